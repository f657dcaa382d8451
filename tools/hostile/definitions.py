"""Definitions of custom resources that are deep, long, or slow to read, and what is asked of a server that has one.

Each shape of a definition is sent as a dry run, made, changed, and then read by: an object of it, a Table of its
objects, and the OpenAPI documents. What follows a definition in the server goes on after the answer, so it is watched
for a while longer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .case import ADMIN, NAMESPACE, NARROW, Case, Request, Target, numbered, repeated

Plain = dict[str, Any]
Shape = Callable[[int], Plain]
"""The definition's spec, as far as it differs from the usual one; `version` is what its one version has more, `schema`
stands for that of its spec."""

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_JSON: Final = (("Content-Type", "application/json"), ("Accept", "application/json"))
_TABLE: Final = (("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),)
_FOLLOWING: Final = 1.0
"""Seconds in which a server does what follows from a definition."""
_SERVED: Final = 10.0
_GROUP: Final = "hostile.example.com"


def _text(**more: Any) -> Plain:
    return {"type": "string", **more}


def _object(properties: Mapping[str, Any], **more: Any) -> Plain:
    return {"type": "object", "properties": dict(properties), **more}


def definition(plural: str, differences: Plain) -> Plain:
    """A CustomResourceDefinition of this plural, with what a shape makes."""
    more = dict(differences)
    schema = more.pop("schema", None) or _text()
    root = more.pop("root", None) or _object({"spec": schema, "status": {"type": "object"}})
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": root},
        "subresources": {"status": {}},
        **more.pop("version", {}),
    }
    kind = plural.capitalize()
    names = {
        "plural": plural,
        "kind": kind,
        "listKind": f"{kind}List",
        "singular": plural[:-1],
        **more.pop("names", {}),
    }
    metadata = {"name": f"{plural}.{_GROUP}", **more.pop("metadata", {})}
    spec = {"group": _GROUP, "scope": "Namespaced", "names": names, "versions": [version], **more}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def _nested(inner: Plain, wrap: Callable[[Plain], Plain], count: int) -> Plain:
    for _ in range(count):
        inner = wrap(inner)
    return inner


def _deep(wrap: Callable[[Plain], Plain], each: int) -> Shape:
    """Return a schema nested as deeply as a body may be; one schema in another takes `each` levels."""
    return lambda size: {"schema": _nested(_text(), wrap, min(size // 40, 480 // each))}


def _rules(make: Callable[[int], list[Plain]], **more: Any) -> Shape:
    return lambda size: {"schema": {**_text(), **more, "x-kubernetes-validations": make(size)}}


def _expression(make: Callable[[int], str], **more: Any) -> Shape:
    return _rules(lambda size: [{"rule": make(size)}], **more)


def _column(make: Callable[[int], str]) -> Shape:
    return lambda size: {
        "version": {"additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": make(size)}]}
    }


def _pattern(make: Callable[[int], str]) -> Shape:
    return lambda size: {"schema": _text(pattern=make(size))}


def _default(make: Callable[[int], Any], schema: Plain) -> Shape:
    return lambda size: {"schema": _object({"a": {**schema, "default": make(size)}})}


def _version(name: str) -> Plain:
    return {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}


def _versions(size: int) -> Plain:
    others = [_version(each) for each in numbered("v{i}", size // 20, start=2)]
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    return {"versions": [first, *others]}


_LIST: Final = {"type": "array", "items": _text()}

SHAPES: Final[Mapping[str, Shape]] = {
    # Depth
    "deep-properties": _deep(lambda inner: _object({"a": inner}), 2),
    "deep-items": _deep(lambda inner: {"type": "array", "items": inner}, 1),
    "deep-values": _deep(lambda inner: {"type": "object", "additionalProperties": inner}, 1),
    "deep-allof": lambda size: {
        "schema": {**_text(), **_nested({"minLength": 1}, lambda a: {"allOf": [a]}, min(size // 20, 230))}
    },
    "deep-anyof": lambda size: {
        "schema": {**_text(), **_nested({"minLength": 1}, lambda a: {"anyOf": [a, a]}, min(size.bit_length() - 4, 13))}
    },
    "deep-not": lambda size: {
        "schema": {**_text(), **_nested({"minLength": 1}, lambda a: {"not": a}, min(size // 20, 460))}
    },
    "deep-default": _default(
        lambda size: _nested({}, lambda a: {"a": a}, min(size // 6, 480)),
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    ),
    # Lists
    "versions": _versions,
    "versions-same-name": lambda size: {"versions": [_version("v1")] * (size // 100)},
    "columns": lambda size: {
        "version": {
            "additionalPrinterColumns": [
                {"name": each, "type": "string", "jsonPath": f".spec.{each}"} for each in numbered("c{i}", size // 10)
            ]
        }
    },
    "columns-same": lambda size: {
        "version": {"additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": ".spec"}] * (size // 60)}
    },
    "selectable-fields": lambda size: {
        "version": {"selectableFields": [{"jsonPath": f".spec.{each}"} for each in numbered("c{i}", size // 6)]}
    },
    "short-names": lambda size: {"names": {"shortNames": numbered("s{i}", size)}},
    "short-names-same": lambda size: {"names": {"shortNames": ["a"] * (size // 4)}},
    "categories": lambda size: {"names": {"categories": numbered("s{i}", size)}},
    "enum": lambda size: {"schema": _text(enum=numbered("e{i}", size))},
    "enum-same": lambda size: {"schema": _text(enum=["a"] * (size // 4))},
    "enum-objects": lambda size: {
        "schema": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "enum": [{"a": each} for each in range(size // 12)],
        }
    },
    "required": lambda size: {"schema": {"type": "object", "required": numbered("r{i}", size)}},
    "required-same": lambda size: {"schema": {"type": "object", "required": ["a"] * (size // 4)}},
    "properties": lambda size: {"schema": _object({each: {"type": "string"} for each in numbered("p{i}", size // 4)})},
    "properties-defaulted": lambda size: {
        "schema": _object(
            {each: {"type": "string", "default": "a"} for each in numbered("p{i}", size // 6)}, default={}
        )
    },
    "properties-long": lambda size: {"schema": _object({repeated("a", size): _text()})},
    "allof": lambda size: {"schema": _text(allOf=[{"minLength": each} for each in range(size // 18)])},
    "anyof": lambda size: {"schema": _text(anyOf=[{"minLength": each} for each in range(size // 18)])},
    "oneof": lambda size: {"schema": _text(oneOf=[{"minLength": each} for each in range(size // 18)])},
    "oneof-required": lambda size: {
        "schema": _object(
            {each: _text() for each in numbered("p{i}", size // 16)},
            oneOf=[{"required": [each]} for each in numbered("p{i}", size // 16)],
        )
    },
    "anyof-patterns": lambda size: {
        "schema": _text(anyOf=[{"pattern": f"^({each}|x)*$"} for each in numbered("p{i}", size // 5)])
    },
    "map-keys": lambda size: {
        "schema": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": numbered("k{i}", size // 5),
            "items": _object({each: {"type": "string", "default": ""} for each in numbered("k{i}", size // 5)}),
        }
    },
    "formats-unknown": lambda size: {
        "schema": _object({each: _text(format=f"unknown-{each}") for each in numbered("p{i}", size // 6)})
    },
    "types-wrong": lambda size: {
        "schema": _object({each: {"type": "nothing"} for each in numbered("p{i}", size // 4)})
    },
    "types-missing": lambda size: {"schema": _object({each: {} for each in numbered("p{i}", size // 2)})},
    "ref": lambda size: {
        "schema": _object({each: {"$ref": "#/definitions/a"} for each in numbered("p{i}", size // 4)})
    },
    "definitions": lambda size: {
        "schema": {**_text(), "definitions": {each: {"type": "string"} for each in numbered("p{i}", size // 4)}}
    },
    "dependencies": lambda size: {
        "schema": {**_text(), "dependencies": {each: ["a"] for each in numbered("p{i}", size)}}
    },
    "pattern-properties": lambda size: {
        "schema": {**_text(), "patternProperties": {f"({each}+)+$": _text() for each in numbered("p{i}", size // 4)}}
    },
    "items-list": lambda size: {"schema": {"type": "array", "items": [{"type": "string"}] * (size // 18)}},
    "conversion-versions": lambda size: {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": numbered("v{i}", size),
                "clientConfig": {"url": "https://127.0.0.1:1/"},
            },
        }
    },
    "ca-bundle": lambda size: {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:1/", "caBundle": repeated("LS0t", size)},
            },
        }
    },
    "url": lambda size: {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:1/" + repeated("%41", size)},
            },
        }
    },
    # Texts
    "description": lambda size: {"schema": _text(description=repeated("line\n", size))},
    "descriptions": lambda size: {
        "schema": _object({each: _text(description="a\n\n b  " * 10) for each in numbered("p{i}", size // 30)})
    },
    "annotation": lambda size: {"metadata": {"annotations": {"a": repeated("x", min(size, 250_000))}}},
    "group": lambda size: {"group": repeated("a.", size) + "a"},
    "kind": lambda size: {"names": {"kind": repeated("Aa", size)}},
    "external-docs": lambda size: {"schema": _text(externalDocs={"url": repeated("x", size)})},
    "title": lambda size: {"schema": _text(title=repeated("x", size))},
    # Patterns
    "pattern-long": _pattern(lambda size: "^" + repeated("a", size) + "$"),
    "pattern-alternatives": _pattern(lambda size: "|".join(numbered("a{i}", size))),
    "pattern-stars": _pattern(lambda size: "^" + repeated("(a*)*", size) + "$"),
    "pattern-nested": _pattern(lambda size: "(" * min(size, 900) + "a" + ")*" * min(size, 900)),
    "pattern-deep": _pattern(lambda size: "(" * (size // 2) + "a" + ")" * (size // 2)),
    "pattern-repeats": _pattern(lambda size: "((a{1,30}){1,30})" if size < 100_000 else "(((a{1,10}){1,10}){1,10})"),
    "pattern-repeats-many": _pattern(lambda size: repeated("(a{1,1000})", size)),
    "pattern-classes": _pattern(lambda size: repeated("\\pL", size)),
    "pattern-classes-repeated": _pattern(lambda size: repeated("\\pL{1000}", min(size, 30_000))),
    "pattern-names": _pattern(lambda size: "".join(f"(?P<{each}>a)" for each in numbered("n{i}", size // 2))),
    "patterns": lambda size: {
        "schema": _object({each: _text(pattern=f"^({each}|x){{1,90}}$") for each in numbered("p{i}", size // 7)})
    },
    "patterns-classes": lambda size: {
        "schema": _object({each: _text(pattern=f"^(\\pL|{each}){{1,90}}$") for each in numbered("p{i}", size // 7)})
    },
    # Expressions
    "rule-long": _expression(lambda size: "self == '" + repeated("x", size) + "'"),
    "rule-terms": _expression(lambda size: " && ".join(["self != 'a'"] * (size // 15))),
    "rule-alternatives": _expression(
        lambda size: " || ".join(f"self == '{each}'" for each in numbered("a{i}", size // 4))
    ),
    "rule-sum": _expression(lambda size: "size(self) < " + "+".join(["1"] * (size // 2))),
    "rule-list": _expression(lambda size: "self in [" + ",".join(["'a'"] * (size // 4)) + "]"),
    "rule-list-mixed": _expression(lambda size: "self in [" + ",".join(["'a',1"] * (size // 6)) + "]"),
    "rule-map": _expression(
        lambda size: "self in {" + ",".join(f"'{each}':1" for each in numbered("a{i}", size // 2)) + "}"
    ),
    "rule-deep": _expression(lambda size: "(" * (size // 2) + "self == ''" + ")" * (size // 2)),
    "rule-deep-lists": _expression(lambda size: "[" * (size // 2) + "]" * (size // 2) + " == []"),
    "rule-deep-calls": _expression(lambda size: "size(" * (size // 6) + "self" + ")" * (size // 6) + " == 1"),
    "rule-not": _expression(lambda size: repeated("!", size) + "true"),
    "rule-minus": _expression(lambda size: repeated("-", size) + "1 == 1"),
    "rule-conditions": _expression(lambda size: "self == '' ? true : " * (size // 20) + "false"),
    "rule-dots": _expression(lambda size: "self" + repeated(".a", size)),
    "rule-indexes": _expression(lambda size: "self" + repeated("[0]", size)),
    "rule-calls": _expression(lambda size: "self" + repeated(".trim()", size) + " == ''"),
    "rule-macros": _expression(
        lambda size: _macros(min(size // 3000, 30)), type="array", items=_text(maxLength=1), maxItems=1
    ),
    "rule-macros-many": _expression(
        lambda size: " && ".join(["self.all(a, a == '')"] * (size // 25)),
        type="array",
        items=_text(maxLength=1),
        maxItems=1,
    ),
    "rule-exists-one": _expression(
        lambda size: _macros(min(size // 3000, 30), "exists_one"), type="array", items=_text(maxLength=1), maxItems=1
    ),
    "rule-maps-nested": _expression(
        lambda size: "self" + ".map(a, a)" * (size // 10) + " == []", type="array", items=_text(maxLength=1), maxItems=1
    ),
    "rule-map-doubling": _expression(lambda size: "[1]" + ".map(a, [a, a])" * min(size // 100, 300) + " == []"),
    "rule-ranges": _expression(
        lambda size: "lists.range(1000000).all(a, " * min(size // 10_000, 6) + "true" + ")" * min(size // 10_000, 6)
    ),
    "rule-bind": _expression(lambda size: _bound(min(size // 300, 200))),
    "rule-optional": _expression(lambda size: "[" + ",".join(["?optional.of(1)"] * (size // 16)) + "] == []"),
    "rule-regex": _expression(lambda size: "self.matches('" + repeated("(a*)*", size) + "')"),
    "rule-format": _expression(
        lambda size: "'" + repeated("%s", size) + "'.format([" + ",".join(["self"] * (size // 4)) + "]) == ''"
    ),
    "rule-format-wide": _expression(lambda size: "'%.1000000000f'.format([1.0]) == '' && self != ''"),
    "rule-escapes": _expression(lambda size: "self == '" + repeated("\\u0041", size) + "'"),
    "rule-escape-wrong": _expression(lambda size: "self == '" + repeated("\\q", size) + "'"),
    "rule-comment": _expression(lambda size: "true //" + repeated("x", size)),
    "rule-lines": _expression(lambda size: repeated("\n", size) + "true"),
    "rule-spaces": _expression(lambda size: repeated(" ", size) + "true"),
    "rule-digits": _expression(lambda size: "self == '' || 1 == " + repeated("1", size)),
    "rule-fraction": _expression(lambda size: "self == '' || 1.0 == 1." + repeated("1", size)),
    "rule-errors": _expression(lambda size: repeated("nothing(", size)),
    "rule-errors-quotes": _expression(lambda size: repeated("'", size)),
    "rule-errors-names": _expression(lambda size: " && ".join(numbered("n{i}", size))),
    "rule-errors-types": _expression(lambda size: " && ".join(["1"] * (size // 5))),
    "rule-errors-signs": _expression(lambda size: repeated("@#", size)),
    "rule-errors-brackets": _expression(lambda size: repeated("([{", size)),
    "rule-struct": _expression(
        lambda size: "Object{" + ",".join(f"{each}: 1" for each in numbered("a{i}", size // 4)) + "} == 1"
    ),
    "rule-quantity": _expression(lambda size: "quantity('" + repeated("1", size) + "') == quantity('1')"),
    "rule-timestamp": _expression(lambda size: "timestamp('" + repeated("1", size) + "') == timestamp('1')"),
    "rule-duration": _expression(lambda size: "duration('" + repeated("1h", size) + "') == duration('1s')"),
    "rule-url": _expression(lambda size: "isURL('" + repeated("http://a/", size) + "')"),
    "rule-cidr": _expression(lambda size: "isCIDR('" + repeated("1.", size) + "')"),
    "rules": _rules(lambda size: [{"rule": f"self != '{each}'"} for each in numbered("a{i}", size // 4)]),
    "rules-true": _rules(lambda size: [{"rule": "true"}] * (size // 16)),
    "rules-wrong": _rules(lambda size: [{"rule": "nothing(1"}] * (size // 22)),
    "rules-messages": _rules(lambda size: [{"rule": "true", "messageExpression": "'a' + self"}] * (size // 50)),
    "rules-message-long": _rules(
        lambda size: [{"rule": "true", "messageExpression": " + ".join(["self"] * (size // 7))}]
    ),
    "rules-paths": _rules(lambda size: [{"rule": "true", "fieldPath": repeated(".a", size)}]),
    "rules-paths-many": lambda size: {
        "schema": _object(
            {each: _text() for each in numbered("p{i}", size // 16)},
            **{
                "x-kubernetes-validations": [
                    {"rule": "true", "fieldPath": f".{each}"} for each in numbered("p{i}", size // 16)
                ]
            },
        )
    },
    "rules-old": _rules(lambda size: [{"rule": "oldSelf == self", "optionalOldSelf": False}] * (size // 50)),
    "rules-everywhere": lambda size: {
        "schema": _object(
            {
                each: _text(**{"x-kubernetes-validations": [{"rule": "self != 'a'"}]})
                for each in numbered("p{i}", size // 9)
            }
        )
    },
    "rules-large-type": lambda size: {
        "schema": _object(
            {each: _text() for each in numbered("p{i}", size // 6)},
            **{"x-kubernetes-validations": [{"rule": "self.p1 == ''"}] * 20},
        )
    },
    "rules-costs": lambda size: {
        "schema": _nested(
            {"type": "string", "x-kubernetes-validations": [{"rule": "self.contains(self)"}]},
            lambda a: {"type": "array", "items": a},
            min(size // 1000, 200),
        )
    },
    # Paths
    "column-path-long": _column(lambda size: repeated(".a", size)),
    "column-path-recursive": _column(lambda size: repeated("..a", size)),
    "column-path-stars": _column(lambda size: ".spec" + repeated("[*]", size)),
    "column-path-union": _column(lambda size: ".a[" + ",".join(["0"] * (size // 2)) + "]"),
    "column-path-filters": _column(lambda size: ".spec" + repeated("[?(@.a==1)]", size)),
    "column-path-deep": _column(lambda size: ".spec" + "[?(@" * (size // 5) + ")]" * (size // 5)),
    "column-path-digits": _column(lambda size: ".a[" + repeated("1", size) + "]"),
    "column-path-quotes": _column(lambda size: ".a['" + repeated("x", size) + "']"),
    "column-path-braces": _column(lambda size: ".spec" + repeated("{.a}", size)),
    "column-path-open": _column(lambda size: ".spec" + repeated("[", size)),
    "scale-path": lambda size: {
        "version": {
            "subresources": {
                "scale": {
                    "specReplicasPath": ".spec" + repeated(".a", size),
                    "statusReplicasPath": ".status" + repeated(".a", size),
                }
            }
        }
    },
    "selectable-path": lambda size: {"version": {"selectableFields": [{"jsonPath": ".spec" + repeated(".a", size)}]}},
    # Defaults and numbers
    "default-text": _default(lambda size: repeated("x", size), _text()),
    "default-list": _default(lambda size: ["a"] * (size // 4), _LIST),
    "default-objects": _default(
        lambda size: [{}] * (size // 3), {"type": "array", "items": _object({"a": {"type": "string", "default": "a"}})}
    ),
    "default-unknown": _default(lambda size: dict.fromkeys(numbered("u{i}", size // 3), 1), {"type": "object"}),
    "default-wrong": _default(lambda size: ["a"] * (size // 4), {"type": "array", "items": {"type": "integer"}}),
    "default-set": _default(lambda size: numbered("s{i}", size), {**_LIST, "x-kubernetes-list-type": "set"}),
    "default-in-default": lambda size: {
        "schema": _nested(_text(default="a"), lambda a: _object({"a": a}, default={}), min(size // 40, 240))
    },
    "number-digits": lambda size: {
        "schema": _object({"a": {"type": "number", "maximum": 1}, "b": {"type": "integer"}}),
        "x": int("1"),
    },
    "multiple-of": lambda size: {"schema": {"type": "number", "multipleOf": 1e-300, "default": 1e300}},
    "bounds": lambda size: {"schema": _text(maxLength=9223372036854775807, minLength=9223372036854775807)},
    "preserve": lambda size: {
        "schema": {
            "x-kubernetes-preserve-unknown-fields": True,
            "default": dict.fromkeys(numbered("u{i}", size // 3), 1),
        }
    },
    "embedded": lambda size: {
        "schema": _object(
            {
                each: {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                }
                for each in numbered("p{i}", size // 20)
            }
        )
    },
}


def _macros(count: int, name: str = "all") -> str:
    return "".join(f"self.{name}(a{each}, " for each in range(count)) + "true" + ")" * count


def _bound(count: int) -> str:
    """Each variable is twice the one before."""
    text = "cel.bind(a0, 'x', "
    for each in range(1, count):
        text += f"cel.bind(a{each}, a{each - 1} + a{each - 1}, "
    return text + f"a{count - 1} == self" + ")" * count


class _Made:
    """Definitions on the servers, which are deleted before the next are made."""

    def __init__(self) -> None:
        self._last: dict[int, str] = {}
        self._number = 0

    def name(self) -> str:
        self._number += 1
        return f"h{self._number}s"

    def clear(self, target: Target) -> None:
        last = self._last.pop(id(target), None)
        if last is not None:
            target.ask(Request("DELETE", f"{DEFINITIONS}/{last}.{_GROUP}", (("Connection", "close"),), token=ADMIN))

    def remember(self, target: Target, plural: str) -> None:
        self._last[id(target)] = plural


_made: Final = _Made()

Way = Callable[[Shape, int, Target], Request | None]


def _body(plural: str, shape: Shape, size: int) -> bytes:
    return json.dumps(definition(plural, shape(size)), separators=(",", ":"), ensure_ascii=False).encode()


def _dry_run(shape: Shape, size: int, target: Target) -> Request:
    return Request("POST", f"{DEFINITIONS}?dryRun=All", _JSON, _body("dries", shape, size), ADMIN)


def _created(shape: Shape, size: int, target: Target) -> Request:
    _made.clear(target)
    plural = _made.name()
    _made.remember(target, plural)
    return Request("POST", DEFINITIONS, _JSON, _body(plural, shape, size), ADMIN)


def _updated(shape: Shape, size: int, target: Target) -> Request:
    """One without anything becomes one of this shape."""
    _made.clear(target)
    plural = _made.name()
    _made.remember(target, plural)
    plain = json.dumps(definition(plural, {})).encode()
    target.ask(Request("POST", DEFINITIONS, (*_JSON, ("Connection", "close")), plain, ADMIN))
    wanted = definition(plural, shape(size))
    _served(target, plural)
    patch = {"metadata": wanted["metadata"], "spec": wanted["spec"]}
    path = f"{DEFINITIONS}/{plural}.{_GROUP}"
    headers = (("Content-Type", "application/merge-patch+json"),)
    return Request("PATCH", path, headers, json.dumps(patch, separators=(",", ":")).encode(), ADMIN)


def _relabelled(shape: Shape, size: int, target: Target) -> Request | None:
    """A small change of one that is there."""
    plural = _there(shape, size, target)
    if plural is None:
        return None
    headers = (("Content-Type", "application/merge-patch+json"),)
    body = b'{"metadata":{"labels":{"a":"b"}}}'
    return Request("PATCH", f"{DEFINITIONS}/{plural}.{_GROUP}", headers, body, ADMIN)


def _there(shape: Shape, size: int, target: Target) -> str | None:
    """The plural of a definition of this shape that is served; None if it is refused."""
    request = _created(shape, size, target)
    plural = json.loads(request.body)["spec"]["names"]["plural"]
    code, _ = target.ask(Request("POST", request.target, (*_JSON, ("Connection", "close")), request.body, ADMIN))
    return plural if code == 201 and _served(target, plural) else None


def _served(target: Target, plural: str) -> bool:
    until = time.monotonic() + _SERVED
    path = f"/apis/{_GROUP}/v1/namespaces/{NAMESPACE}/{plural}"
    while time.monotonic() < until:
        code, _ = target.ask(Request("GET", path, (("Connection", "close"),), token=ADMIN))
        if code == 200:
            return True
        time.sleep(0.1)
    return False


def _read(path: str, headers: tuple[tuple[str, str], ...] = ()) -> Way:
    def make(shape: Shape, size: int, target: Target) -> Request | None:
        plural = _there(shape, size, target)
        if plural is None:
            return None
        collection = f"/apis/{_GROUP}/v1/namespaces/{NAMESPACE}/{plural}"
        item = {"apiVersion": f"{_GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": "a"}}
        if path == "{table}":
            target.ask(Request("POST", collection, (*_JSON, ("Connection", "close")), json.dumps(item).encode(), ADMIN))
        return Request("GET", collection if path == "{table}" else path, headers, token=ADMIN)

    return make


def _object_made(shape: Shape, size: int, target: Target) -> Request | None:
    plural = _there(shape, size, target)
    if plural is None:
        return None
    item = {"apiVersion": f"{_GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": "a"}, "spec": "a" * 30}
    path = f"/apis/{_GROUP}/v1/namespaces/{NAMESPACE}/{plural}"
    return Request("POST", path, _JSON, json.dumps(item).encode(), NARROW)


WAYS: Final[Mapping[str, Way]] = {
    "dry-run": _dry_run,
    "create": _created,
    "update": _updated,
    "relabel": _relabelled,
    "object": _object_made,
    "table": _read("{table}", _TABLE),
    "openapi-v3": _read(f"/openapi/v3/apis/{_GROUP}/v1"),
    "openapi-v2": _read("/openapi/v2"),
    "discovery": _read("/apis", (("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),)),
}

_FOLLOWED: Final = ("create", "update", "relabel")


def cases() -> Iterator[Case]:
    """Every shape in every way."""
    for name, shape in SHAPES.items():
        for way, make in WAYS.items():
            lasting = _FOLLOWING if way in _FOLLOWED else 0.0
            yield Case(f"definitions/{name}/{way}", _case(make, shape), group=name, lasting=lasting)


def _case(make: Way, shape: Shape) -> Callable[[int, Target], Request | None]:
    return lambda size, target: make(shape, size, target)
