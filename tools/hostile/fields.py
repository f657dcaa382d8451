"""Every list, map and string of every kind, and objects full of one of them.

An object is one of the samples of `tools/differential` with one value in it replaced by a text of JSON, which may be
megabytes: the object is written with a marker in its place.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from steersman.controlplane.resources import KUBE_API
from steersman.machinery.codec.go_types import GoType, members_of
from tools.differential.case import named
from tools.differential.objects import Sample, samples

from .case import NAMESPACE

ITEM: Final = "[]"
VALUE: Final = "{}"
MARKER: Final = "@FULL@"

FILLS: Final = ("equal", "distinct", "empty", "null")
"""Kinds of items that fill a list or map."""
_UNIONS: Final = ("Volume", "VolumeProjection", "EnvFromSource")
"""Structs of which one member says what it is: for another member there must be another item."""
_TELLING: Final = (
    "name",
    "key",
    "uid",
    "ip",
    "path",
    "mountPath",
    "devicePath",
    "topologyKey",
    "value",
    "hostname",
    "id",
)
"""Members by which items of lists are told apart."""
_PLAIN: Final = {"string": "a", "bool": True, "bytes": "AAEC", "float64": 1, "any": "a"}
_OWN: Final = {
    "api.resource.Quantity": "1",
    "meta.v1.Time": "2026-01-01T00:00:00Z",
    "util.intstr.IntOrString": 1,
    "meta.v1.MicroTime": "2026-01-01T00:00:00.000000Z",
    "meta.v1.Duration": "1s",
}

Path = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Subject:
    """A sample with a name of its own."""

    sample: Sample
    name: str
    body: dict[str, Any]

    @property
    def kind(self) -> str:
        return f"{self.sample.api_version}.{self.body['kind']}"

    @property
    def stored(self) -> bool:
        """Return True if there is an object to update after the create."""
        return self.sample.resource.answerer is None

    @property
    def collection(self) -> str:
        return str(named(self.sample.collection, self.name, NAMESPACE))

    @property
    def path(self) -> str:
        return str(named(self.sample.path, self.name, NAMESPACE))


@dataclass(frozen=True)
class Field:
    """A place in a kind: names of members, `ITEM` for any item, `VALUE` for any value of a map."""

    path: Path
    type: GoType

    def __str__(self) -> str:
        return ".".join(self.path).replace("." + ITEM, ITEM).replace("." + VALUE, VALUE)

    @property
    def in_status(self) -> bool:
        return self.path[0] == "status"


@lru_cache(maxsize=1)
def subjects() -> tuple[Subject, ...]:
    """The samples served by default; the first of each kind."""
    found: dict[tuple[str, str], Subject] = {}
    for sample in samples():
        key = sample.api_version, sample.body["kind"]
        name = f"hostile-{len(found)}"
        found.setdefault(key, Subject(sample, name, named(sample.body, name, NAMESPACE)))
    return (*found.values(), *_answered())


def _answered() -> Iterator[Subject]:
    """Yield subjects that can only be created: reviews of access and tokens, bindings."""
    for resource in KUBE_API:
        if resource.answerer is not None:
            kind = resource.kind.name
            api_version = f"{resource.group}/{resource.version}" if resource.group else resource.version
            body: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "metadata": {}}
            type_ = resource.kind.go_type
            assert type_ is not None, kind
            if "spec" in members_of(type_):
                body["spec"] = {}
            yield Subject(Sample(body, resource, api_version, type_, False), "", body)


@cache
def fields_of(subject: Subject) -> tuple[Field, ...]:
    """All places of a kind, those with a type within itself only once."""
    return tuple(_fields(subject.sample.type, (), ()))


def _fields(type_: GoType, path: Path, within: tuple[str, ...]) -> Iterator[Field]:
    if path:
        yield Field(path, type_)
    if type_.kind == "struct" and type_.name not in within:
        for name, member in members_of(type_).items():
            if path or name not in ("kind", "apiVersion"):
                yield from _fields(member.type, (*path, name), (*within, type_.name))
    elif type_.kind in ("list", "map") and type_.element is not None:
        yield from _fields(type_.element, (*path, ITEM if type_.kind == "list" else VALUE), within)


def filled(field: Field, fill: str, size: int) -> str | None:
    """JSON of a list or map of about `size` bytes full of equal, distinct, empty or null items."""
    element = field.type.element
    assert element is not None
    item = {} if fill == "empty" and element.kind == "struct" else _item(element, field.path[-1])
    if fill == "empty" and element.kind != "struct":
        item = {"list": [], "map": {}, "bool": False}.get(element.kind, "" if element.kind in ("string", "own") else 0)
    text = "null" if fill == "null" else json.dumps(item, separators=(",", ":"))
    if field.type.kind == "map":
        if fill == "equal":
            entry = f'"a":{text}'
            return "{" + ",".join([entry] * max(size // (len(entry) + 1), 1)) + "}"
        count = max(size // (len(text) + 11), 1)
        return "{" + ",".join(f'"k{number}":{_varied(item, text, fill, number)}' for number in range(count)) + "}"
    count = max(size // (len(text) + (6 if fill == "distinct" else 1)), 1)
    if fill != "distinct":
        return "[" + ",".join([text] * count) + "]"
    return "[" + ",".join(_varied(item, text, fill, number) for number in range(count)) + "]"


def _varied(item: Any, text: str, fill: str, number: int) -> str:
    """An item told apart from others by its number."""
    if fill != "distinct":
        return text
    if isinstance(item, str):
        return json.dumps(f"{item}{number}" if not item[:1].isdigit() else f"{number}{item}")
    if isinstance(item, bool) or item is None:
        return text
    if isinstance(item, int | float):
        return str(int(item) + number)
    if not isinstance(item, dict):
        return text
    changed = dict(item)
    told = [name for name in _TELLING if isinstance(item.get(name), str)]
    for name in told or [name for name, value in item.items() if isinstance(value, str)][:1]:
        value = item[name]
        if value.count(".") == 3 and value.replace(".", "").isdigit():
            changed[name] = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        else:
            changed[name] = f"{value}{number}"
    for name, value in item.items():
        if isinstance(value, int) and not isinstance(value, bool):
            changed[name] = (value + number) % 65_535 + 1
    return json.dumps(changed, separators=(",", ":"))


@lru_cache(maxsize=1)
def _seen() -> tuple[dict[str, Any], dict[str, Any]]:
    """From all samples: an item of each struct, and a scalar under each name."""
    structs: dict[str, Any] = {}
    scalars: dict[str, Any] = {}

    def look(value: Any, type_: GoType, name: str) -> None:
        if type_.kind == "struct" and isinstance(value, dict):
            if len(json.dumps(value)) < 400:
                structs.setdefault(type_.name, value)
            members = members_of(type_)
            for key, each in value.items():
                if key in members:
                    look(each, members[key].type, key)
        elif type_.kind in ("list", "map") and isinstance(value, list | dict) and type_.element is not None:
            for each in value if isinstance(value, list) else value.values():
                look(each, type_.element, name)
        elif not isinstance(value, list | dict):
            scalars.setdefault(name, value)

    for subject in subjects():
        look(subject.body, subject.sample.type, "")
    return structs, scalars


def _item(type_: GoType, name: str, depth: int = 0) -> Any:
    """A likely value of a type under a name."""
    structs, scalars = _seen()
    kind = type_.kind
    if kind == "struct":
        if type_.name in structs:
            return copy.deepcopy(structs[type_.name])
        members = members_of(type_)
        chosen: list[str] = [each for each in (*_TELLING, "kind", "type", "operator") if each in members]
        chosen = chosen or ([] if depth > 2 else list(members)[:2])
        return {each: _item(members[each].type, each, depth + 1) for each in chosen if depth < 4}
    if kind == "list" and type_.element is not None:
        return [_item(type_.element, name, depth + 1)]
    if kind == "map" and type_.element is not None:
        return {"a": _item(type_.element, name, depth + 1)}
    if kind == "own":
        return _OWN.get(type_.name, {})
    found = scalars.get(name)
    if kind in ("int32", "int64", "uint8"):
        return found if isinstance(found, int) and not isinstance(found, bool) else 1
    return found if kind == "string" and isinstance(found, str) else _PLAIN.get(kind, "a")


def placed(body: dict[str, Any], type_: GoType, path: Path, full: str) -> str:
    """JSON of `body` with the text `full` at a path; what is missing on the way is made."""
    copied = copy.deepcopy(body)
    _place(copied, type_, path)
    return json.dumps(copied, separators=(",", ":"), ensure_ascii=False).replace(f'"{MARKER}"', full)


def fragment(type_: GoType, path: Path, body: dict[str, Any], full: str) -> str:
    """Return the patch that holds only those parts of `body` that lead to the path; names of items stay."""
    whole: Any = copy.deepcopy(body)
    _place(whole, type_, path)
    small = _led(whole)
    return json.dumps(small, separators=(",", ":")).replace(f'"{MARKER}"', full)


def _led(value: Any) -> Any:
    """Return the parts of a value that lead to the marker, None if none do."""
    if value == MARKER:
        return value
    if isinstance(value, dict):
        for name, each in value.items():
            led = _led(each)
            if led is not None:
                keys = {key: value[key] for key in _TELLING if isinstance(value.get(key), str) and key != name}
                return {**keys, name: led}
    elif isinstance(value, list):
        for each in value:
            led = _led(each)
            if led is not None:
                return [led]
    return None


def pointer(body: dict[str, Any], type_: GoType, path: Path) -> str:
    """The JSON pointer of a path in `body` with the marker placed."""
    whole: Any = copy.deepcopy(body)
    _place(whole, type_, path)
    found: list[str] = []

    def look(value: Any) -> bool:
        if value == MARKER:
            return True
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, each in items:
            found.append(str(key).replace("~", "~0").replace("/", "~1"))
            if look(each):
                return True
            found.pop()
        return False

    look(whole)
    return "/" + "/".join(found)


def _place(value: Any, type_: GoType, path: Path) -> None:
    step, rest = path[0], path[1:]
    member = members_of(type_)[step].type if type_.kind == "struct" else type_.element
    assert member is not None
    if step == ITEM:
        key: Any = _index(value, type_, rest)
    else:
        key = next(iter(value), "a") if step == VALUE else step
    if not rest:
        value[key] = MARKER
        return
    there = value.get(key) if isinstance(value, dict) else value[key]
    if not isinstance(there, dict | list):
        there = [] if member.kind == "list" else {}
        value[key] = there
    _place(there, member, rest)


def _index(items: list[Any], type_: GoType, rest: Path) -> int:
    """Return the index of the list item on the path: an item with the next member, the first, or a new one."""
    for number, each in enumerate(items):
        if rest and isinstance(each, dict) and rest[0] in each:
            return number
    union = type_.element is not None and type_.element.name.rpartition(".")[2] in _UNIONS
    if items and not union:
        return 0
    element = type_.element
    if element is None or element.kind != "struct":
        items.append(None)
    else:
        members = members_of(element)
        items.append({"name": "extra"} if "name" in members else {})
    return len(items) - 1
