"""Sorting of large maps before msgspec encodes them in order.

msgspec's own sort is quadratic for maps that are nearly sorted, holds the interpreter while it runs, and recurses once
for each key of some maps: 65,000 keys, of which the last comes first, crash the process. It is linear for sorted maps.
"""

from __future__ import annotations

from threading import get_ident, main_thread
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")

_MANY: Final = 200
"""The number of keys up to which msgspec sorts a map in negligible time, in whatever order they are."""
_FEW_COMMAS: Final = 500
"""Commas of JSON up to which its maps are not examined: msgspec sorts 500 keys in 1.5 ms at worst."""
_IN_ORDER: Final = msgspec.json.Encoder()
_MAIN: Final = main_thread().ident


def presorted(value: T) -> T:
    """Return `value` with its large maps sorted, or unchanged if this is the main thread.

    Large values are processed in worker threads. The event loop only handles values too small for the sort to matter.
    """
    return value if get_ident() == _MAIN else with_sorted_maps(value)


def presorted_json(value: T) -> T:
    """Return `value`, which msgspec encodes as JSON, as `presorted` does, at little cost if it is small.

    Its length in JSON is known twenty times as fast as its maps are visited. Raises the errors of msgspec's encoder.
    """
    if get_ident() == _MAIN or _IN_ORDER.encode(value).count(b",") <= _FEW_COMMAS:
        return value
    return with_sorted_maps(value)


def with_sorted_maps(value: T) -> T:
    """Return `value` with each large map replaced, in place, by a sorted one."""
    sorted_value: T = _sorted(value)
    _walk(sorted_value)
    return sorted_value


def _sorted(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > _MANY:
        keys = list(value)
        if all(isinstance(key, str) for key in keys):
            keys.sort()
            return {key: value[key] for key in keys}
    return value


def _walk(value: Any) -> None:
    if isinstance(value, dict):
        for key, member in value.items():
            if isinstance(member, dict) and len(member) > _MANY:
                value[key] = member = _sorted(member)
            if isinstance(member, dict | list | msgspec.Struct):
                _walk(member)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict) and len(item) > _MANY:
                value[index] = item = _sorted(item)
            if isinstance(item, dict | list | msgspec.Struct):
                _walk(item)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            member = getattr(value, name)
            if isinstance(member, dict) and len(member) > _MANY:
                member = _sorted(member)
                if value.__struct_config__.frozen:
                    msgspec.structs.force_setattr(value, name, member)
                else:
                    setattr(value, name, member)
            if isinstance(member, dict | list | msgspec.Struct):
                _walk(member)
