"""Empty lists as storage gives them back: upstream stores protobuf, which does not tell an empty list from none."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from steersman.api.scalars import nil


def forget_empty_lists(obj: msgspec.Struct) -> None:
    """Makes None of every empty list, at any depth, that prints null when it is None."""
    for attribute in _nullable(type(obj)):
        if getattr(obj, attribute) == []:
            setattr(obj, attribute, None)
    for attribute in obj.__struct_fields__:
        value = getattr(obj, attribute)
        if isinstance(value, msgspec.Struct):
            forget_empty_lists(value)
        elif isinstance(value, list | dict):
            for item in value if isinstance(value, list) else value.values():
                if isinstance(item, msgspec.Struct):
                    forget_empty_lists(item)


@lru_cache(maxsize=4096)
def _nullable(cls: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in msgspec.structs.fields(cls) if each.default_factory is nil)
