"""The fields of a kind, as its schema in the server's OpenAPI document has them, and what each is tried with.

An integer gets its largest and its smallest valid value, a text as much as a body may have of each grammar that there
is, a list or a map as many items as a body may have. Whether a value is valid, the server says itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, Final, NamedTuple

from tools.cluster_attacks.cluster import Plain

Path = tuple[str | int, ...]

INTEGERS: Final = (
    2**63 - 1,
    2**31 - 1,
    1_000_000_000,
    31_536_000,
    1_000_000,
    100_000,
    65_535,
    32_767,
    10_000,
    3_600,
    1_000,
    100,
    10,
    1,
)
SMALL_INTEGERS: Final = (-(2**63), -(2**31), -1000, -1, 0, 1)
SIZES: Final = (2_800_000, 1_000_000, 250_000, 60_000, 15_000, 4_000, 1_000)
"""Bytes of a text; the first that is valid counts."""
COUNTS: Final = (60_000, 30_000, 15_000, 7_000, 3_000, 1_000, 250, 60, 16, 8)
SEEDS: Final = (
    "x",
    "0-59,",
    "1ns",
    "a,",
    "a.",
    "a-",
    "/a",
    "../",
    "$(A)",
    "$A ",
    "a\n",
    "1",
    "0",
    "{{.}}",
    "a=b,",
    "\\",
    '"',
    "é",
    "%41",
    "(",
    "a:",
    " ",
    "1.",
    "'[]",
)
ITEMS: Final[dict[str, list[Any]]] = {
    "containers": [
        {"name": "c", "image": "i", "command": ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; done; sleep 3"]},
        {"name": "c", "image": "i", "livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1}},
    ],
    "initContainers": [{"name": "n", "image": "i", "command": ["sh", "-c", "echo a; exit 1"]}],
    "volumes": [{"name": "n", "emptyDir": {}}, {"name": "n", "configMap": {"name": "m", "optional": True}}],
    "volumeMounts": [{"name": "e", "mountPath": "/m"}],
    "env": [{"name": "N", "value": "$(A)$(A)"}],
    "items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.annotations"}}],
}
"""Further items of lists, by their names."""
FEW_SEEDS: Final = ("x", "0-59,", "1ns", "$(A)", "a\n")
"""Texts for a short run."""
_MOST_BYTES: Final = 2_800_000
_MOST_VALUES: Final = 64_000
_MOST_OBJECTS: Final = 32_000
_SKIPPED: Final = frozenset({"apiVersion", "kind", "status"})
_METADATA: Final = frozenset({"labels", "annotations", "finalizers", "ownerReferences"})
_REPEATED: Final = frozenset({"template", "jobTemplate", "initContainers"})
"""Members whose schema is that of members of pods: of these only what is in the sample is tried."""


class Field(NamedTuple):
    """A field: where it is, and `integer`, `text`, `list` or `map`."""

    path: Path
    kind: str


class Attempt(NamedTuple):
    """Variants of an object, of which the first that is valid is an attack."""

    name: str
    variants: Sequence[Callable[[], Plain]]


class Schemas:
    """The schemas of an OpenAPI v3 document."""

    def __init__(self, document: Plain) -> None:
        self._schemas: Final = document["components"]["schemas"]

    def of_kind(self, group: str, version: str, kind: str) -> Plain:
        """Return the schema of a kind. Raises KeyError."""
        wanted = {"group": group, "version": version, "kind": kind}
        for schema in self._schemas.values():
            if wanted in schema.get("x-kubernetes-group-version-kind", ()):
                found: Plain = schema
                return found
        raise KeyError(kind)

    def resolved(self, schema: Plain) -> Plain:
        """Return a schema with what it refers to."""
        while True:
            refs = [schema, *schema.get("allOf", ())]
            ref = next((each["$ref"] for each in refs if "$ref" in each), None)
            if ref is None:
                return schema
            schema = self._schemas[ref.rpartition("/")[2]]


def fields(schemas: Schemas, schema: Plain, value: Any, path: Path = ()) -> Iterator[Field]:
    """The fields of an object whose schema this is, as deep as the sample `value` goes."""
    schema = schemas.resolved(schema)
    kind = _kind_of(schema)
    if kind:
        yield Field(path, kind)
    if isinstance(value, dict) and "additionalProperties" in schema:
        for key, each in value.items():
            yield from fields(schemas, schema["additionalProperties"], each, (*path, key))
    elif isinstance(value, dict):
        known = _METADATA if path[-1:] == ("metadata",) else None
        within = bool(_REPEATED.intersection(path))
        for name, member in schema.get("properties", {}).items():
            if name in _SKIPPED or (known is not None and name not in known) or (within and name not in value):
                continue
            yield from fields(schemas, member, value.get(name), (*path, name))
    elif isinstance(value, list) and value:
        for at, each in enumerate(value):
            yield from fields(schemas, schema["items"], each, (*path, at))


def _kind_of(schema: Plain) -> str:
    if schema.get("format") == "int-or-string" or "oneOf" in schema:
        return "text" if schema.get("format") != "int-or-string" else "integer"
    match schema.get("type"):
        case "integer" | "number":
            return "integer"
        case "string":
            return "" if "enum" in schema else "text"
        case "array":
            return "list"
        case "object" if "additionalProperties" in schema:
            return "map"
    return ""


def put(obj: Plain, path: Path, value: Any) -> Plain:
    """Return a copy of an object in which a field has this value; a list that the sample does not have is begun."""
    copied = deepcopy(obj)
    place: Any = copied
    for step, following in pairwise(path):
        if isinstance(place, dict) and step not in place:
            place[step] = [] if isinstance(following, int) else {}
        place = place[step]
    place[path[-1]] = value
    return copied


def get(obj: Any, path: Path) -> Any:
    """Return the value of a field; None where the object does not have it."""
    for step in path:
        if isinstance(obj, dict):
            obj = obj.get(step)
        elif isinstance(obj, list) and isinstance(step, int) and step < len(obj):
            obj = obj[step]
        else:
            return None
    return obj


def attempts(
    obj: Plain, field: Field, valid: Callable[[Plain], bool], seeds: Sequence[str] = SEEDS
) -> Iterator[Attempt]:
    """Yield attempts for a field of an object.

    `valid` returns True if the server accepts an object, at least a small one. Texts are made of `seeds`.
    """
    match field.kind:
        case "integer":
            for name, numbers in (("largest", INTEGERS), ("smallest", SMALL_INTEGERS)):
                yield Attempt(name, [_with(obj, field.path, number) for number in numbers])
        case "text":
            for seed in seeds:
                for name, form in _forms(get(obj, field.path), seed):
                    if valid(put(obj, field.path, form(40))):
                        yield Attempt(name, [_with(obj, field.path, lazily(form, size)) for size in SIZES])
                        break
        case "list":
            yield from _lists(obj, field, valid)
        case "map":
            yield from _maps(obj, field, valid)


def _with(obj: Plain, path: Path, value: Any) -> Callable[[], Plain]:
    return lambda: put(obj, path, value() if callable(value) else value)


def lazily(form: Callable[[int], Any], size: int) -> Callable[[], Any]:
    """Return what makes a value of a size when it is called."""
    return lambda: form(size)


def _forms(known: Any, seed: str) -> Iterator[tuple[str, Callable[[int], str]]]:
    """Texts of a size: a seed again and again, alone or before or behind the sample's text."""
    usual = known if isinstance(known, str) else ""

    def repeated(size: int) -> str:
        return seed * max(1, size // len(seed.encode()))

    yield f"{seed!r}*", repeated
    if usual:
        yield f"{seed!r}*+{usual!r}", lambda size: repeated(size) + usual
        yield f"{usual!r}+{seed!r}*", lambda size: usual + repeated(size)
        if " " in usual:
            yield f"{seed!r}* {usual!r}", lambda size: repeated(size).rstrip(",") + " " + usual.partition(" ")[2]


def _lists(obj: Plain, field: Field, valid: Callable[[Plain], bool]) -> Iterator[Attempt]:
    known = get(obj, field.path)
    items = known if isinstance(known, list) and known else [_plausible(field.path)]
    others = items[1:]
    items = [*items[:3], *ITEMS.get(str(field.path[-1]), ())]
    for at, item in enumerate(items):
        for name, vary in (("distinct", _distinct), ("all distinct", _all_distinct), ("equal", _equal)):

            def form(count: int, item: Any = item, vary: Callable[[Any, int], Any] = vary) -> list[Any]:
                return [*(others if item is items[0] else ()), *(vary(item, number) for number in range(count))]

            if valid(put(obj, field.path, form(8))):
                counts = [count for count in COUNTS if count <= _most(item)]
                yield Attempt(
                    f"{name} items like {at}",
                    [_with(obj, field.path, lazily(form, count)) for count in (_most(item), *counts)],
                )
                break


def _maps(obj: Plain, field: Field, valid: Callable[[Plain], bool]) -> Iterator[Attempt]:
    known = get(obj, field.path)
    value = next(iter(known.values())) if isinstance(known, dict) and known else "b"
    kept = known if isinstance(known, dict) else {}
    for text in (value, "1", ["a"]):

        def form(count: int, text: Any = text) -> dict[str, Any]:
            return {**kept, **{f"k{number}": text for number in range(count)}}

        if valid(put(obj, field.path, form(8))):
            most = min(_MOST_BYTES // (len(json.dumps(text)) + 11), _MOST_VALUES)
            counts = (most, *(each for each in COUNTS if each < most))
            yield Attempt("items", [_with(obj, field.path, lazily(form, count)) for count in counts])
            return


def _plausible(path: Path) -> Any:
    """Return an item of a list that no sample has."""
    return {
        "ownerReferences": {"apiVersion": "v1", "kind": "ConfigMap", "name": "n", "uid": "u"},
        "finalizers": "example.com/a",
        "podIPs": {"ip": "1.2.3.4"},
    }.get(str(path[-1]), "a")


def _most(item: Any) -> int:
    values, objects = _weight(item)
    size = len(json.dumps(item)) + 6
    return min(_MOST_BYTES // size, _MOST_VALUES // values, _MOST_OBJECTS // max(objects, 1))


def _weight(item: Any) -> tuple[int, int]:
    """Values and objects of an item."""
    if isinstance(item, dict):
        found = [_weight(each) for each in item.values()]
    elif isinstance(item, list):
        found = [_weight(each) for each in item]
    else:
        return 1, 0
    return 1 + sum(values for values, _ in found), 1 + sum(objects for _, objects in found)


_NAMES: Final = ("name", "key", "ip", "mountPath", "path", "uid", "containerPort", "port", "hostPort", "topologyKey")


def _distinct(item: Any, number: int) -> Any:
    """Return an item with a name of its own, where items have names."""
    if not isinstance(item, dict):
        return _varied(item, number)
    return {key: _varied(value, number) if key in _NAMES else deepcopy(value) for key, value in item.items()}


def _all_distinct(item: Any, number: int) -> Any:
    if isinstance(item, dict):
        return {key: _all_distinct(value, number) for key, value in item.items()}
    if isinstance(item, list):
        return [_all_distinct(value, number) for value in item]
    return _varied(item, number)


def _equal(item: Any, _: int) -> Any:
    return deepcopy(item)


def _varied(value: Any, number: int) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return deepcopy(value)
    if isinstance(value, int):
        return 1 + (value + number) % 65_000
    if value.replace(".", "").replace("/", "").isdigit():
        return f"10.{number // 62500 % 250}.{number // 250 % 250}.{1 + number % 249}"
    return f"{value}{number}"
