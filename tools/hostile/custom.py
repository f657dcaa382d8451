"""Objects of a definition that has everything: full lists of every type, deep values, rules near their budget.

The definition is made once on each server. An object is created, updated, applied and patched as a dry run; stored, it
is changed a little, and read in every form; many of them are listed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .case import ADMIN, NAMESPACE, NARROW, Case, Request, Target, numbered, repeated
from .definitions import DEFINITIONS

Plain = dict[str, Any]
Shape = Callable[[int], Plain]
"""The spec of an object of about so many bytes; `metadata` and `status` in it are those of the object."""

_GROUP: Final = "hostile-objects.example.com"
_PLURAL: Final = "wholes"
_COLLECTION: Final = f"/apis/{_GROUP}/v1/namespaces/{NAMESPACE}/{_PLURAL}"
_OTHER: Final = f"/apis/{_GROUP}/v2/namespaces/{NAMESPACE}/{_PLURAL}"
_JSON: Final = (("Content-Type", "application/json"), ("Accept", "application/json"))
_CLOSE: Final = ("Connection", "close")
_TABLE: Final = (("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),)
_METADATA: Final = (("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),)
_MANY: Final = 10_000

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_ANYTHING: Final = {"x-kubernetes-preserve-unknown-fields": True}


def _object(**properties: Plain) -> Plain:
    return {"type": "object", "properties": properties}


def _list(items: Plain, kind: str = "", **more: Any) -> Plain:
    found = {"type": "array", "items": items, **more}
    return {**found, "x-kubernetes-list-type": kind} if kind else found


def _deep(count: int) -> Plain:
    return _object(a=_deep(count - 1)) if count else {"type": "object", **_ANYTHING}


_PAIR: Final = _object(name=_TEXT, value=_TEXT)
_KEYED: Final = {**_PAIR, "required": ["name"]}
_SHORT: Final = {
    **_object(name={**_TEXT, "maxLength": 20}, value={**_TEXT, "maxLength": 5}),
    "required": ["name"],
}
_ATOMIC: Final = {**_PAIR, "x-kubernetes-map-type": "atomic"}
_KEYS: Final = ("a", "b", "c", "d", "e")
_SPEC: Final = _object(
    texts=_list(_TEXT),
    set=_list(_TEXT, "set"),
    numbers=_list(_NUMBER, "set"),
    pairs=_list(_ATOMIC, "set"),
    map=_list(_KEYED, "map", **{"x-kubernetes-list-map-keys": ["name"]}),
    keys=_list(
        _object(**{key: {**_TEXT, "default": ""} for key in _KEYS}),
        "map",
        **{"x-kubernetes-list-map-keys": list(_KEYS)},
    ),
    atomic=_list(_PAIR, "atomic"),
    open={"type": "object", **_ANYTHING},
    anything=_ANYTHING,
    values={"type": "object", "additionalProperties": _TEXT},
    objects={"type": "object", "additionalProperties": _PAIR},
    either=_list({"x-kubernetes-int-or-string": True}),
    branches=_list({**_TEXT, "oneOf": [{"pattern": f"^x{number}$"} for number in range(100)]}),
    choices=_list({**_NUMBER, "anyOf": [{"enum": [number]} for number in range(200)]}),
    negated=_list({**_TEXT, "not": {"anyOf": [{"enum": [str(number)]} for number in range(200)]}}),
    pattern={**_TEXT, "pattern": "^(a|b|ab)*c$"},
    slow={**_TEXT, "pattern": "^[01]*1[01]{500}$"},
    patterns=_list({**_TEXT, "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}),
    long={**_TEXT, "maxLength": 10},
    enum=_list({**_TEXT, "enum": [f"e{number}" for number in range(500)]}),
    times=_list({**_TEXT, "format": "date-time"}),
    addresses=_list({**_TEXT, "format": "ipv6"}),
    mails=_list({**_TEXT, "format": "email"}),
    uris=_list({**_TEXT, "format": "uri"}),
    bytes=_list({**_TEXT, "format": "byte"}),
    durations=_list({**_TEXT, "format": "duration"}),
    names=_list({**_TEXT, "format": "hostname"}),
    defaulted=_list(_object(**{f"d{number}": {**_TEXT, "default": "x"} for number in range(50)})),
    embedded=_list({"type": "object", "x-kubernetes-embedded-resource": True, **_ANYTHING}),
    nullable=_list({**_TEXT, "nullable": True}),
    deep=_deep(60),
    multiples=_list({"type": "number", "multipleOf": 0.1}),
    ruled=_list(
        {**_TEXT, "maxLength": 20, "x-kubernetes-validations": [{"rule": "self.startsWith('a')"}]}, maxItems=5_000
    ),
    crossed=_list(
        {**_TEXT, "maxLength": 5},
        "",
        maxItems=100,
        **{"x-kubernetes-validations": [{"rule": "self.all(a, self.exists(b, a == b))"}]},
    ),
    kept=_list(
        {**_SHORT, "x-kubernetes-validations": [{"rule": "!has(self.value) || self.value == oldSelf.value"}]},
        "map",
        maxItems=20_000,
        **{"x-kubernetes-list-map-keys": ["name"]},
    ),
    replicas=_NUMBER,
)


def _version(name: str, *, stored: bool) -> Plain:
    status = _object(texts=_list(_TEXT), map=_SPEC["properties"]["map"], replicas=_NUMBER, selector=_TEXT)
    paths = (".spec.map[*].name", ".spec..name", ".spec.texts[-1]", ".spec.values.*", '.spec.map[?(@.name=="a")].value')
    return {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": _object(spec=_SPEC, status=status)},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": f"c{number}", "type": "string", "jsonPath": path} for number, path in enumerate(paths)
        ],
        "selectableFields": [{"jsonPath": ".spec.pattern"}, {"jsonPath": ".spec.long"}],
    }


def _definition() -> Plain:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{_PLURAL}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "versions": [_version("v1", stored=True), _version("v2", stored=False)],
            "names": {"plural": _PLURAL, "singular": "whole", "kind": "Whole", "listKind": "WholeList"},
        },
    }


def _nested(count: int) -> Any:
    value: Any = 1
    for _ in range(min(count, 480)):
        value = {"a": value}
    return value


def _items(name: str, make: Callable[[int], list[Any]]) -> Shape:
    return lambda size: {name: make(size)}


def _named(form: str, more: str = "") -> Callable[[int], list[Any]]:
    def make(size: int) -> list[Any]:
        return [{"name": each, "value": more} for each in numbered(form, size // 5)]

    return make


def _text(name: str, unit: str) -> Shape:
    return lambda size: {name: repeated(unit, size)}


SHAPES: Final[Mapping[str, Shape]] = {
    **{
        f"{name}-distinct": _items(name, lambda size: numbered("a{i}", size))
        for name in (
            "texts",
            "set",
            "either",
            "branches",
            "negated",
            "patterns",
            "enum",
            "times",
            "addresses",
            "mails",
            "uris",
            "bytes",
            "durations",
            "names",
            "nullable",
            "ruled",
            "crossed",
        )
    },
    **{
        f"{name}-same": _items(name, lambda size: ["a"] * (size // 4))
        for name in ("texts", "set", "branches", "negated", "patterns", "enum", "ruled")
    },
    **{
        f"{name}-distinct": _items(name, lambda size: list(range(size // 6)))
        for name in ("numbers", "choices", "multiples")
    },
    **{f"{name}-same": _items(name, lambda size: [1] * (size // 2)) for name in ("numbers", "choices", "multiples")},
    **{f"{name}-wrong": _items(name, lambda size: [1] * (size // 2)) for name in ("texts", "set", "pairs", "map")},
    **{f"{name}-distinct": _items(name, _named("a{i}")) for name in ("pairs", "map", "keys", "atomic", "kept")},
    **{f"{name}-same": _items(name, _named("a")) for name in ("pairs", "map", "keys", "atomic", "kept")},
    **{
        f"{name}-empty": _items(name, lambda size: [{}] * (size // 3))
        for name in ("pairs", "map", "keys", "atomic", "defaulted", "embedded")
    },
    **{f"{name}-long": _text(name, "ab") for name in ("pattern", "long")},
    "slow-long": lambda size: {"slow": repeated("01", size) + "2"},
    **{
        f"{name}-texts-long": _items(name, lambda size: [repeated("a1:", size)])
        for name in ("times", "addresses", "mails", "uris", "bytes", "durations", "names", "patterns")
    },
    "open-members": lambda size: {"open": dict.fromkeys(numbered("m{i}", size // 2), 1)},
    "open-deep": lambda size: {"open": {"a": _nested(size // 6)}},
    "anything-lists": lambda size: {"anything": [[]] * (size // 3)},
    "values-members": lambda size: {"values": dict.fromkeys(numbered("m{i}", size // 2), "a")},
    "values-wrong": lambda size: {"values": dict.fromkeys(numbered("m{i}", size // 2), 1)},
    "objects-members": lambda size: {"objects": {each: {"name": "a"} for each in numbered("m{i}", size // 4)}},
    "unknown-members": lambda size: dict.fromkeys(numbered("u{i}", size // 2), 1),
    "deep-deep": lambda size: {"deep": _nested(size // 6)},
    "null-members": lambda size: dict.fromkeys(numbered("u{i}", size // 2)),
    "set-objects": _items("set", lambda size: [{"a": number} for number in range(size // 12)]),
    "pairs-deep": _items("pairs", lambda size: [{"name": "a", "value": _nested(400)}] * (size // 2400)),
    "embedded-metadata": _items(
        "embedded",
        lambda size: [
            {"apiVersion": "v1", "kind": "A", "metadata": {"name": each, "labels": {"a": 1}}}
            for each in numbered("e{i}", size // 12)
        ],
    ),
    "labels": lambda size: {"metadata": {"labels": dict.fromkeys(numbered("l{i}", size // 2), "a")}},
    "annotations": lambda size: {"metadata": {"annotations": dict.fromkeys(numbered("l{i}", size // 2), "a")}},
    "finalizers": lambda size: {"metadata": {"finalizers": numbered("a.b/f{i}", size)}},
    "finalizers-same": lambda size: {"metadata": {"finalizers": ["a.b/c"] * (size // 8)}},
    "owners": lambda size: {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "uid": each} for each in numbered("u{i}", size // 12)
            ]
        }
    },
    "managed-fields": lambda size: {
        "metadata": {
            "managedFields": [
                {
                    "manager": each,
                    "operation": "Update",
                    "apiVersion": f"{_GROUP}/v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:map": {}}},
                }
                for each in numbered("m{i}", size // 30)
            ]
        }
    },
    "managed-keys": lambda size: {
        "metadata": {
            "managedFields": [
                {
                    "manager": "m",
                    "operation": "Update",
                    "apiVersion": f"{_GROUP}/v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:spec": {"f:map": {f'k:{{"name":"{each}"}}': {} for each in numbered("m{i}", size // 8)}}
                    },
                }
            ]
        }
    },
    "status-texts": lambda size: {"status": {"texts": numbered("a{i}", size)}},
    "status-map": lambda size: {"status": {"map": _named("a{i}")(size)}},
}


def _body(name: str, shape: Shape, size: int) -> Plain:
    spec = shape(size)
    metadata = {"name": name, **spec.pop("metadata", {})}
    body = {"apiVersion": f"{_GROUP}/v1", "kind": "Whole", "metadata": metadata}
    if "status" in spec:
        body["status"] = spec.pop("status")
    return {**body, "spec": spec}


def _written(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _ready(target: Target) -> None:
    """The definition is there, and served."""
    path = f"{DEFINITIONS}/{_PLURAL}.{_GROUP}"
    target.existing(path, DEFINITIONS, _definition())
    for _ in range(100):
        if target.ask(Request("GET", _COLLECTION, (_CLOSE,), token=ADMIN))[0] == 200:
            return
        time.sleep(0.1)


def _stored(name: str, shape: Shape, size: int, target: Target) -> bool:
    """Return True if the object is stored under this name, large as it is, or was stored before."""
    target.ask(Request("DELETE", f"{_COLLECTION}/{name}", (_CLOSE,), token=ADMIN))
    body = _body(name, shape, size)
    status = body.get("status")
    code, _ = target.ask(Request("POST", _COLLECTION, (*_JSON, _CLOSE), _written(body), ADMIN))
    if status is not None and code == 201:
        patch = (("Content-Type", "application/merge-patch+json"), _CLOSE)
        code, _ = target.ask(
            Request("PATCH", f"{_COLLECTION}/{name}/status", patch, _written({"status": status}), ADMIN)
        )
    return code in (200, 201)


Way = Callable[[Shape, int, Target], Request | None]


def _created(shape: Shape, size: int, target: Target) -> Request:
    return Request("POST", f"{_COLLECTION}?dryRun=All", _JSON, _written(_body("new", shape, size)))


def _created_strictly(shape: Shape, size: int, target: Target) -> Request:
    path = f"{_COLLECTION}?dryRun=All&fieldValidation=Strict"
    return Request("POST", path, _JSON, _written(_body("new", shape, size)))


def _created_as_yaml(shape: Shape, size: int, target: Target) -> Request:
    headers = (("Content-Type", "application/yaml"), ("Accept", "application/yaml"))
    return Request("POST", f"{_COLLECTION}?dryRun=All", headers, b"# an object\n" + _written(_body("new", shape, size)))


def _really_created(shape: Shape, size: int, target: Target) -> Request:
    target.ask(Request("DELETE", f"{_COLLECTION}/really", (_CLOSE,), token=ADMIN))
    return Request("POST", _COLLECTION, _JSON, _written(_body("really", shape, size)))


def _created_in_other(shape: Shape, size: int, target: Target) -> Request:
    body = {**_body("new", shape, size), "apiVersion": f"{_GROUP}/v2"}
    return Request("POST", f"{_OTHER}?dryRun=All", _JSON, _written(body))


def _small(target: Target) -> None:
    body = {"apiVersion": f"{_GROUP}/v1", "kind": "Whole", "metadata": {"name": "small"}, "spec": {"replicas": 1}}
    target.existing(f"{_COLLECTION}/small", _COLLECTION, body)


def _applied(shape: Shape, size: int, target: Target) -> Request:
    _small(target)
    body = _body("small", shape, size)
    path = f"{_COLLECTION}/small{'/status' if 'status' in body else ''}?fieldManager=hostile&force=true&dryRun=All"
    return Request("PATCH", path, (("Content-Type", "application/apply-patch+yaml"),), _written(body))


def _merged(shape: Shape, size: int, target: Target) -> Request:
    _small(target)
    body = _body("small", shape, size)
    path = f"{_COLLECTION}/small{'/status' if 'status' in body else ''}?dryRun=All"
    return Request("PATCH", path, (("Content-Type", "application/merge-patch+json"),), _written(body))


def _json_patched(shape: Shape, size: int, target: Target) -> Request:
    _small(target)
    operations = [
        {"op": "add", "path": f"/spec/{name}", "value": value}
        for name, value in _body("small", shape, size)["spec"].items()
    ]
    path = f"{_COLLECTION}/small?dryRun=All"
    return Request("PATCH", path, (("Content-Type", "application/json-patch+json"),), _written(operations[:9_999]))


def _with_stored(make: Callable[[Plain], Request]) -> Way:
    def way(shape: Shape, size: int, target: Target) -> Request | None:
        if not _stored("large", shape, size, target):
            return None
        code, answer = target.ask(Request("GET", f"{_COLLECTION}/large", (_CLOSE,), token=ADMIN))
        return make(json.loads(answer)) if code == 200 else None

    return way


def _updated(found: Plain) -> Request:
    found["spec"] = {**found.get("spec", {}), "replicas": 2}
    return Request("PUT", f"{_COLLECTION}/large?dryRun=All", _JSON, _written(found))


def _relabelled(found: Plain) -> Request:
    headers = (("Content-Type", "application/merge-patch+json"),)
    return Request("PATCH", f"{_COLLECTION}/large?dryRun=All", headers, b'{"metadata":{"labels":{"a":"b"}}}')


def _applied_again(found: Plain) -> Request:
    metadata = {"name": "large", "labels": {"a": "b"}}
    body = {"apiVersion": found["apiVersion"], "kind": "Whole", "metadata": metadata, "spec": found.get("spec", {})}
    path = f"{_COLLECTION}/large?fieldManager=hostile&force=true&dryRun=All"
    return Request("PATCH", path, (("Content-Type", "application/apply-patch+yaml"),), _written(body))


def _scaled(found: Plain) -> Request:
    headers = (("Content-Type", "application/merge-patch+json"),)
    return Request("PATCH", f"{_COLLECTION}/large/scale?dryRun=All", headers, b'{"spec":{"replicas":3}}')


def _status_changed(found: Plain) -> Request:
    headers = (("Content-Type", "application/merge-patch+json"),)
    return Request("PATCH", f"{_COLLECTION}/large/status?dryRun=All", headers, b'{"status":{"replicas":3}}')


def _reading(path: str, headers: tuple[tuple[str, str], ...] = ()) -> Way:
    return _with_stored(lambda found: Request("GET", path, headers))


WAYS: Final[Mapping[str, Way]] = {
    "create": _created,
    "create-strict": _created_strictly,
    "create-yaml": _created_as_yaml,
    "create-really": _really_created,
    "create-other": _created_in_other,
    "apply": _applied,
    "merge": _merged,
    "json-patch": _json_patched,
    "update": _with_stored(_updated),
    "relabel": _with_stored(_relabelled),
    "apply-again": _with_stored(_applied_again),
    "scale": _with_stored(_scaled),
    "status": _with_stored(_status_changed),
    "get": _reading(f"{_COLLECTION}/large"),
    "get-other": _reading(f"{_OTHER}/large"),
    "get-yaml": _reading(f"{_COLLECTION}/large", (("Accept", "application/yaml"),)),
    "list-other": _reading(_OTHER),
    "table": _reading(_COLLECTION, _TABLE),
    "table-other": _reading(_OTHER, _TABLE),
    "metadata": _reading(_COLLECTION, _METADATA),
    "select": _reading(f"{_COLLECTION}?fieldSelector=spec.pattern=a"),
    "protobuf": _reading(f"{_COLLECTION}/large", (("Accept", "application/vnd.kubernetes.protobuf"),)),
}


def cases() -> Iterator[Case]:
    """Every shape in every way; and lists of many."""
    for name, shape in SHAPES.items():
        for way, make in WAYS.items():
            yield Case(f"custom/{name}/{way}", _case(make, shape), group=name)
    for name, (path, headers) in _LISTS.items():
        yield Case(f"custom/many/{name}", _of_many(path, headers), group="many", sizes=(1,))


def _case(make: Way, shape: Shape) -> Callable[[int, Target], Request | None]:
    def case(size: int, target: Target) -> Request | None:
        _ready(target)
        return make(shape, size, target)

    return case


_CROWD: Final = f"/apis/{_GROUP}/v1/namespaces/hostile-crowded/{_PLURAL}"
_LISTS: Final[Mapping[str, tuple[str, tuple[tuple[str, str], ...]]]] = {
    "list": (_CROWD, ()),
    "list-other": (_CROWD.replace("/v1/", "/v2/"), ()),
    "table": (_CROWD, _TABLE),
    "table-other": (_CROWD.replace("/v1/", "/v2/"), _TABLE),
    "metadata": (_CROWD, _METADATA),
    "yaml": (_CROWD, (("Accept", "application/yaml"),)),
    "selected": (f"{_CROWD}?fieldSelector=spec.pattern=abc", ()),
    "watch": (
        f"{_CROWD}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true",
        (),
    ),
    "watch-other": (f"{_CROWD.replace('/v1/', '/v2/')}?watch=1&timeoutSeconds=1", ()),
}


def _of_many(path: str, headers: tuple[tuple[str, str], ...]) -> Callable[[int, Target], Request | None]:
    def case(size: int, target: Target) -> Request:
        _ready(target)
        last = Request("GET", f"{_CROWD}/m{_MANY - 1:05}", (_CLOSE,), token=ADMIN)
        for number in range(_MANY if target.ask(last)[0] != 200 else 0):
            body = {
                "apiVersion": f"{_GROUP}/v1",
                "kind": "Whole",
                "metadata": {"name": f"m{number:05}"},
                "spec": {"texts": ["a", "b"], "pattern": "abc", "map": [{"name": "a", "value": "b"}]},
            }
            target.ask(Request("POST", _CROWD, (*_JSON, _CLOSE), _written(body), ADMIN))
        return Request("GET", path, headers, token=NARROW)

    return case
