"""Objects of any kind with one list or map filled, made from the types alone, valid or not."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from steersman.api import scalars
from steersman.api.apiextensions.v1 import JSONSchemaProps
from steersman.api.core.v1 import PodSpec, PodTemplateSpec
from steersman.api.meta.v1 import ObjectMeta

_SAMPLES: dict[Any, Any] = {
    scalars.Quantity: "1",
    scalars.Time: "2020-01-01T00:00:00Z",
    scalars.MicroTime: "2020-01-01T00:00:00.000000Z",
    scalars.Duration: "1s",
    scalars.Float64: 1.5,
    bool: False,
    bytes: "YQ==",
}
_WORDS = {"protocol": "TCP", "operator": "In", "effect": "NoSchedule"}
_ELSEWHERE = (PodSpec, PodTemplateSpec, JSONSchemaProps)
"""Types that many kinds contain; they are filled in one kind only, or in none."""


class Place(NamedTuple):
    """A list or map of a kind: its path, each step with the item type of that list or map or None, and its own item
    type.
    """

    steps: tuple[tuple[str, str, Any], ...]
    name: str
    shape: str
    item: Any

    def __str__(self) -> str:
        return ".".join((*(step[0] for step in self.steps), self.name))


def _shape(type_: Any) -> tuple[str, Any]:
    origin = typing.get_origin(type_)
    if origin is typing.Annotated:
        return _shape(typing.get_args(type_)[0])
    if origin in (typing.Union, types.UnionType):
        return _shape(next(each for each in typing.get_args(type_) if each is not types.NoneType))
    if origin is list:
        return "list", typing.get_args(type_)[0]
    if origin is dict:
        return "map", typing.get_args(type_)[1]
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return "struct", type_
    return "scalar", type_


def places(kind: type[msgspec.Struct], *, pods: bool, metadata: bool) -> Iterator[Place]:
    """Yield every list and map of a kind; on request also those of pod specs and of the metadata."""
    left_out = () if pods else _ELSEWHERE
    yield from _places(kind, (), (*left_out, *(() if metadata else (ObjectMeta,))))


def _places(
    struct: type[msgspec.Struct], steps: tuple[tuple[str, str, Any], ...], seen: tuple[Any, ...]
) -> Iterator[Place]:
    for field in msgspec.structs.fields(struct):
        shape, type_ = _shape(field.type)
        name = field.encode_name
        if type_ in seen or (steps and type_ is ObjectMeta):
            continue
        if shape == "struct":
            yield from _places(type_, (*steps, (name, "struct", type_)), (*seen, type_))
        elif shape != "scalar":
            yield Place(steps, name, shape, type_)
            inner, item = _shape(type_)
            if inner == "struct" and item not in seen:
                yield from _places(item, (*steps, (name, shape, item)), (*seen, item))


def full_object(place: Place, count: int, *, distinct: bool, first: int = 0) -> dict[str, Any]:
    """Return an object with `count` items in a list or map, as a client sends it.

    The items are equal, or distinct and numbered from `first` on.
    """
    metadata = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}}
    root: dict[str, Any] = {"metadata": metadata}
    at = root
    for name, shape, type_ in place.steps:
        if shape == "struct":
            at = at.setdefault(name, {})
            continue
        item = _item(type_, 0)
        at[name] = [item] if shape == "list" else {"k": item}
        at = item
    items = [_item(place.item, first + number if distinct else 0, place.name) for number in range(count)]
    at[place.name] = (
        items if place.shape == "list" else {f"k{first + number}": item for number, item in enumerate(items)}
    )
    return root


def _item(type_: Any, number: int, name: str = "", depth: int = 0) -> Any:
    """Return a value with its scalars, and the scalars one level below, set."""
    shape, type_ = _shape(type_)
    if shape == "scalar":
        return _scalar(type_, number, name.lower())
    if shape == "list":
        return [_item(type_, number, name, depth + 1)]
    if shape == "map":
        return {f"k{number}": _item(type_, number, name, depth + 1)}
    found = {}
    for field in msgspec.structs.fields(type_):
        inner, member = _shape(field.type)
        if inner == "scalar" or (depth < 1 and inner != "struct" and _shape(member)[0] == "scalar"):
            found[field.encode_name] = _item(field.type, number, field.encode_name, depth + 1)
    return found


def _scalar(type_: Any, number: int, name: str) -> Any:
    if type_ in _SAMPLES:
        return _SAMPLES[type_]
    if type_ is int:
        return number % 500 + 1
    if type_ is str:
        if name.endswith(("ip", "ips")):
            return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        if "cidr" in name:
            return f"10.{number >> 8 & 255}.{number & 255}.0/24"
        return _WORDS.get(name, f"a{number}")
    return {"a": number}
