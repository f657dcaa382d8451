"""Fields of values that cannot be decoded, which the server names in part or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from steersman.check.documents import mapping
from steersman.machinery.values.quantity import FORMAT_WRONG, QuantityError, parse
from steersman.work.patterns import late_pattern

_OF_TYPE: Final = late_pattern("cannot unmarshal ([a-z]+) ")
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "bool": (bool,),
    "object": (dict,),
    "array": (list,),
}
_QUANTITIES: Final = frozenset({"allocatable", "capacity", "hard", "limits", "overhead", "podFixed", "requests"})
"""Keys of maps of quantities."""
_MOST_LEVELS: Final = 32


def field_of(plain: dict[str, Any], message: str, field: str) -> str:
    """Return the path of the value that a message is about, or `field` if none is found.

    `field` is a path without the indexes of lists, "" if the message has none.
    """
    if FORMAT_WRONG in message:
        return next(_bad_quantities(plain, "", _MOST_LEVELS), field)
    said = _OF_TYPE.search(message)
    types = _TYPES.get(said[1], ()) if said else ()
    return next(_of_types(plain, field.split("."), "", types), field) if types and field else field


def _bad_quantities(value: Any, path: str, left: int) -> Iterator[str]:
    """Yield the paths of quantities that cannot be parsed."""
    if left <= 0:
        return
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _bad_quantities(each, f"{path}[{index}]", left - 1)
    for key, each in mapping(value).items():
        here = f"{path}.{key}" if path else str(key)
        if key in _QUANTITIES:
            for name, quantity in mapping(each).items():
                if isinstance(quantity, str) and not _is_quantity(quantity):
                    yield f"{here}[{name}]"
        yield from _bad_quantities(each, here, left - 1)


def _is_quantity(text: str) -> bool:
    try:
        parse(text)
    except QuantityError:
        return False
    return True


def _of_types(value: Any, steps: list[str], path: str, types: tuple[type, ...]) -> Iterator[str]:
    """Yield the paths of values of some types, at steps that leave out the indexes of lists."""
    if isinstance(value, list) and (steps or list not in types):
        for index, each in enumerate(value):
            if not isinstance(each, list):  # no kind has lists of lists
                yield from _of_types(each, steps, f"{path}[{index}]", types)
    elif steps:
        if isinstance(value, dict) and steps[0] in value:
            yield from _of_types(value[steps[0]], steps[1:], f"{path}.{steps[0]}" if path else steps[0], types)
    elif isinstance(value, types) and (bool in types or not isinstance(value, bool)):
        yield path
    elif isinstance(value, dict):  # a map, of whose values the message tells
        yield from (f"{path}[{key}]" for key, each in value.items() if isinstance(each, types))
