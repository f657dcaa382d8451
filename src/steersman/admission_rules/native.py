"""Go's native values of expressions in an apply configuration (apiserver `cel/mutation/dynamic`).

A configuration may have JSON values. Other values do not fit into any object. Error messages show them as Go prints
them. The same holds for lists and maps that an expression created inside others, because Go represents them differently
from values that were decoded from JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import IPv4Address
from typing import Any, Final

from steersman.admission_rules.evaluation import Inputs
from steersman.cel.library.addresses import CIDRValue, IPValue
from steersman.cel.library.mutation import JSONPatchValue, ObjectValue
from steersman.cel.library.quantities import QuantityValue
from steersman.cel.library.semvers import SemverValue
from steersman.cel.library.urls import URLValue
from steersman.cel.types import Type
from steersman.cel.values import Duration, Map, Optional, TextList, Timestamp, UInt
from steersman.cel.work import spend, spend_on_text
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.go_print import GoValue, go_source, go_value
from steersman.machinery.values.durations import format_duration

_SECOND: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ADDRESS: Final = "0xc000000000"
"""Placeholder for a pointer's address, which varies in Go."""
_ERROR: Final = GoValue("no such overload", f"(*types.Err)({_ADDRESS})", "*types.Err")
_NULL: Final = GoValue("NULL_VALUE", "0", "structpb.NullValue")
_OBJECTS: Final = "*dynamic.ObjectVal"


class NoTextKey(Exception):
    """A map in an object has a key that is not a string."""


def native_fields(value: ObjectValue, inputs: Inputs) -> dict[str, Any]:
    """Return the fields of an object that an expression created from `inputs`, as copies. Raises NoTextKey."""
    return _NativeConverter(inputs).fields(value)


class _NativeConverter:
    def __init__(self, inputs: Inputs) -> None:
        self._inputs: Final = inputs

    def fields(self, value: ObjectValue) -> dict[str, Any]:
        """Return the native values of an object's fields. Raises NoTextKey."""
        return {name: self._field(each) for name, each in value.fields.items()}

    def _field(self, value: Any) -> Any:
        """Return the native value of a field.

        A list or map in a field becomes a plain one, unlike one inside another list or map. Raises NoTextKey.
        """
        while isinstance(value, Optional) and value.has_value:
            value = value.value
        if isinstance(value, list | tuple) and not isinstance(value, TextList) and not self._is_decoded(value):
            return [self._value(each) for each in value]
        if isinstance(value, Map):
            if not all(isinstance(key, str) for key in value):
                raise NoTextKey
            return {key: self._value(each) for key, each in value.items()}
        return self._value(value)

    def _value(self, value: Any) -> Any:
        spend(2)
        if isinstance(value, str | bytes):
            spend_on_text(2 * len(value))
        if isinstance(value, ObjectValue):
            try:
                return self.fields(value)
            except NoTextKey:
                return _ERROR
        if isinstance(value, Optional):
            return self._value(value.value) if value.has_value else None
        if isinstance(value, dict) or (isinstance(value, list) and self._is_decoded(value)):
            return _copied(value)
        if isinstance(value, UInt) or not isinstance(value, bool | int | float | str):
            return value.name if isinstance(value, Type) else _go_value(value)
        return int(value) if type(value) is int else value

    def _is_decoded(self, value: Any) -> bool:
        return id(value) in self._decoded_lists

    @cached_property
    def _decoded_lists(self) -> frozenset[int]:
        """Return the identities of all lists in the inputs, which outlive this object."""
        inputs = self._inputs
        found: list[int] = []
        pending: list[Any] = [inputs.object, inputs.old_object, inputs.request, inputs.namespace, inputs.params]
        while pending:
            each = pending.pop()
            if isinstance(each, dict):
                pending.extend(each.values())
            elif isinstance(each, list):
                found.append(id(each))
                pending.extend(each)
        return frozenset(found)


def _copied(value: Any) -> Any:
    spend(2)
    if isinstance(value, str):
        spend_on_text(2 * len(value))
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, TextList):
        return _go_value(value)
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _go_value(value: Any) -> GoValue:
    """Return the printed forms of a value that JSON does not have."""
    match value:
        case None:
            return _NULL
        case UInt():
            return GoValue(str(int(value)), hex(value), "uint64")
        case bytes():
            octets = ", ".join(map(hex, value))
            return GoValue(f"[{' '.join(map(str, value))}]", f"[]uint8{{{octets}}}", "[]uint8")
        case Duration():
            return GoValue(format_duration(value.nanos), str(value.nanos), "time.Duration")
        case Timestamp():
            return GoValue(_moment(value), _date(value), "time.Time")
        case TextList():
            return GoValue(f"[{' '.join(value)}]", f"[]string{{{', '.join(map(quote, value))}}}", "[]string")
        case list() | tuple():
            shown, sources = " ".join(map(_printed_item, value)), ", ".join(map(_source, value))
            return GoValue(f"[{shown}]", f"[]ref.Val{{{sources}}}", "[]ref.Val")
        case Map():
            entries = sorted(value.items(), key=lambda entry: (type(entry[0]).__name__, entry[0]))
            shown, sources = _joined(entries, " ", _printed_item), _joined(entries, ", ", _source)
            return GoValue(f"map[{shown}]", f"map[ref.Val]ref.Val{{{sources}}}", "map[ref.Val]ref.Val")
        case QuantityValue():
            return _pointer(str(value.amount), "*resource.Quantity")
        case URLValue():
            return _pointer(value.text, "*url.URL")
        case IPValue():
            return GoValue(str(value.address), _address(value), "netip.Addr")
        case CIDRValue():
            source = f"netip.Prefix{{ip:{_address(value)}, bitsPlusOne:{value.bits + 1:#x}}}"
            return GoValue(f"{value.address}/{value.bits}", source, "netip.Prefix")
        case SemverValue():
            return GoValue(_version(value), _version_source(value), "semver.Version")
        case JSONPatchValue():
            return _pointer(_ADDRESS, "*mutation.JSONPatchVal")
    return _ERROR


def _pointer(shown: str, kind: str) -> GoValue:
    return GoValue(shown, f"({kind})({_ADDRESS})", kind)


def _joined(entries: Iterable[tuple[Any, Any]], between: str, show: Callable[[Any], str]) -> str:
    return between.join(f"{show(key)}:{show(each)}" for key, each in entries)


def _printed_item(value: Any) -> str:
    """Return an item that an expression created, as Go's %v prints it."""
    spend(2)
    if isinstance(value, str | bytes):
        spend_on_text(2 * len(value))
    match value:
        case None:
            return "0"
        case list() | tuple():
            return f"[{', '.join(map(_printed_item, value))}]"
        case Map() | dict():
            return (
                "{" + ", ".join(f"{_printed_item(key)}: {_shown_in(value, each)}" for key, each in value.items()) + "}"
            )
        case Type():
            return value.name
        case ObjectValue():
            return _ADDRESS
        case bool() | str() | float():
            return go_value(value)
        case int() if not isinstance(value, UInt):
            return str(int(value))
    return _go_value(value).value


def _shown_in(container: Any, value: Any) -> str:
    """Return an item of a map as Go's %v prints it; lists in decoded maps print as plain lists."""
    return go_value(value) if isinstance(container, dict) and isinstance(value, list) else _printed_item(value)


def _source(value: Any) -> str:
    """Return an item that an expression created, as Go's %#v prints it."""
    match value:
        case Duration():
            return f"types.Duration{{Duration:{value.nanos}}}"
        case bytes():
            return f"types.Bytes{{{', '.join(map(hex, value))}}}"
        case list() | tuple():
            return f"(*types.baseList)({_ADDRESS})"
        case Map() | dict():
            return f"(*types.baseMap)({_ADDRESS})"
        case ObjectValue():
            return f"({_OBJECTS})({_ADDRESS})"
        case Type():
            return f"(*types.Type)({_ADDRESS})"
        case bool() | str() | float():
            return go_source(value)
        case int() if not isinstance(value, UInt):
            return str(int(value))
    return _go_value(value).source


def _datetime_and_nanos(moment: Timestamp) -> tuple[datetime, int]:
    """Return a moment in whole seconds, and the remaining nanoseconds."""
    seconds, nanos = divmod(moment.nanos, _SECOND)
    return _EPOCH + timedelta(seconds=seconds), nanos


def _moment(moment: Timestamp) -> str:
    at, nanos = _datetime_and_nanos(moment)
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    return f"{at.year:04}-{at:%m-%d %H:%M:%S}{fraction} +0000 UTC"


def _date(moment: Timestamp) -> str:
    at, nanos = _datetime_and_nanos(moment)
    month = _MONTHS[at.month - 1]
    return f"time.Date({at.year}, time.{month}, {at.day}, {at.hour}, {at.minute}, {at.second}, {nanos}, time.UTC)"


_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def _address(value: IPValue | CIDRValue) -> str:
    number = int(value.address)
    if isinstance(value.address, IPv4Address):
        number |= 0xFFFF << 32
    high, low = divmod(number, 1 << 64)
    detail = f"unique.Handle[net/netip.addrDetail]{{value:(*netip.addrDetail)({_ADDRESS})}}"
    return f"netip.Addr{{addr:netip.uint128{{hi:{high:#x}, lo:{low:#x}}}, z:{detail}}}"


def _version(value: SemverValue) -> str:
    return ".".join(map(str, value.numbers)) + _suffix("-", value.prerelease) + _suffix("+", value.build)


def _suffix(mark: str, words: tuple[int | str, ...]) -> str:
    return mark + ".".join(map(str, words)) if words else ""


def _version_source(value: SemverValue) -> str:
    major, minor, patch = map(hex, value.numbers)
    parts = ", ".join(map(_prerelease, value.prerelease))
    before = f"{{{parts}}}" if parts else "(nil)"
    build = f"{{{', '.join(map(quote, value.build))}}}" if value.build else "(nil)"
    return (
        f"semver.Version{{Major:{major}, Minor:{minor}, Patch:{patch}, "
        f"Pre:[]semver.PRVersion{before}, Build:[]string{build}}}"
    )


def _prerelease(part: int | str) -> str:
    if isinstance(part, int):
        return f'semver.PRVersion{{VersionStr:"", VersionNum:{part:#x}, IsNum:true}}'
    return f"semver.PRVersion{{VersionStr:{quote(part)}, VersionNum:0x0, IsNum:false}}"
