"""Objects of built-in kinds as expressions of CEL see them in kwok: with zero values, times and quantities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from steersman.cel.library.quantities import QuantityValue, read_quantity
from steersman.cel.moments import read_timestamp
from steersman.cel.values import LazyMap
from steersman.machinery.values.quantity import Quantity

_TIMES: Final = frozenset(
    {
        "creationTimestamp",
        "deletionTimestamp",
        "finishedAt",
        "lastHeartbeatTime",
        "lastProbeTime",
        "lastTransitionTime",
        "startTime",
        "startedAt",
        "timeAdded",
    }
)
_QUANTITIES: Final = frozenset({"allocatable", "allocatedResources", "capacity", "limits", "overhead", "requests"})
_NONE: Final = QuantityValue(Quantity(0))


class Fields(LazyMap):
    """Struct of the API as a map: each field has a value, if need be its zero value."""

    __slots__ = ("_struct",)

    def __init__(self, struct: msgspec.Struct) -> None:
        self._struct: Final = struct

    def find(self, key: Any) -> tuple[Any, Any] | None:
        attribute = _attributes(type(self._struct)).get(key) if isinstance(key, str) else None
        if attribute is None:
            return None
        return key, _value(key, getattr(self._struct, attribute))

    def __iter__(self) -> Iterator[Any]:
        return iter(type(self._struct).__struct_encode_fields__)

    def __len__(self) -> int:
        return len(type(self._struct).__struct_fields__)


class Amounts(LazyMap):
    """Quantities by resource. A resource that is not there has the quantity 0."""

    __slots__ = ("_amounts",)

    def __init__(self, amounts: Mapping[str, Any]) -> None:
        self._amounts: Final = amounts

    def find(self, key: Any) -> tuple[Any, Any] | None:
        found = self._amounts.get(key) if isinstance(key, str) else None
        return key, _NONE if found is None else read_quantity(str(found))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._amounts)

    def __len__(self) -> int:
        return len(self._amounts)


class Plain(LazyMap):
    """Map of plain data."""

    __slots__ = ("_data",)

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data: Final = data

    def find(self, key: Any) -> tuple[Any, Any] | None:
        return (key, self._data[key]) if isinstance(key, str) and key in self._data else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def typed(value: Any) -> LazyMap:
    """Return a Struct, or a map of plain data, as a map for expressions."""
    if isinstance(value, LazyMap):
        return value
    if isinstance(value, msgspec.Struct):
        return Fields(value)
    return Plain(value if isinstance(value, Mapping) else {})


def _value(name: str, value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return Fields(value)
    if isinstance(value, dict):
        return Amounts(value) if name in _QUANTITIES else value
    if isinstance(value, list):
        return [_value("", each) for each in value]
    if name in _TIMES and isinstance(value, str) and value:
        return read_timestamp(value)
    return value


_BY_CLASS: Final[dict[type[msgspec.Struct], dict[str, str]]] = {}


def _attributes(cls: type[msgspec.Struct]) -> dict[str, str]:
    """Return the attributes of a Struct class by their names in JSON."""
    found = _BY_CLASS.get(cls)
    if found is None:
        found = _BY_CLASS[cls] = dict(zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True))
    return found
