"""Documents that no kind asks for: deep, full of what is unknown or given twice, with large numbers and odd texts.

Each is sent wherever something reads such a document: as a create, an apply, every patch, and options of a delete.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.protobuf.tables import varint
from steersman.machinery.identity.schema import GroupVersionKind

from .case import ADMIN, ANONYMOUS, NAMESPACE, NARROW, USERS, Case, Message, Request, Target, numbered

Form = Callable[[int], bytes]

_CONFIGMAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_OBJECT: Final = '"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"document"}'
_MANAGED: Final = (
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"document","managedFields":[{"manager":"a",'
    b'"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":@}]}}'
)
_APPLY: Final = "application/apply-patch+yaml"

_WHERE: Final[dict[str, tuple[str, str, str]]] = {
    "create": ("POST", f"{_CONFIGMAPS}?dryRun=All", "application/json"),
    "create-strict": ("POST", f"{_CONFIGMAPS}?dryRun=All&fieldValidation=Strict", "application/json"),
    "create-yaml": ("POST", f"{_CONFIGMAPS}?dryRun=All", "application/yaml"),
    "apply": ("PATCH", f"{_CONFIGMAPS}/document?dryRun=All&fieldManager=a&force=true", _APPLY),
    "merge": ("PATCH", f"{_CONFIGMAPS}/document?dryRun=All", "application/merge-patch+json"),
    "strategic": ("PATCH", f"{_CONFIGMAPS}/document?dryRun=All", "application/strategic-merge-patch+json"),
    "json-patch": ("PATCH", f"{_CONFIGMAPS}/document?dryRun=All", "application/json-patch+json"),
    "delete-options": ("DELETE", f"{_CONFIGMAPS}/none?dryRun=All", "application/json"),
    "delete-options-yaml": ("DELETE", f"{_CONFIGMAPS}/none?dryRun=All", "application/yaml"),
}
_JSON_WHERE: Final = tuple(_WHERE)
_YAML_WHERE: Final = ("create-yaml", "apply", "delete-options-yaml")


def _deep(opening: str, closing: str, inner: str = "1", within: str = "") -> Form:
    """Nested values; `within` is the member of the object that has them, the whole document without it."""

    def write(size: int) -> bytes:
        depth = size // (len(opening) + len(closing))
        text = opening * depth + inner + closing * depth
        return (f'{{{_OBJECT},"{within}":{text}}}' if within else text).encode()

    return write


def _member(name: str, value: Callable[[int], str]) -> Form:
    return lambda size: f'{{{_OBJECT},"{name}":{value(size)}}}'.encode()


_JSON: Final[dict[str, Form]] = {
    "deep-lists": _deep("[", "]"),
    "deep-objects": _deep('{"a":', "}"),
    "deep-data": _deep('{"a":', "}", within="data"),
    "deep-unknown": _deep('[{"a":', "}]", within="unknown"),
    "deep-managed": lambda size: _MANAGED.replace(b"@", b'{"f:a":' * (size // 8) + b"{}" + b"}" * (size // 8)),
    "unclosed": lambda size: b"[" * size,
    "unclosed-objects": lambda size: b'{"a":' * (size // 5),
    "unknown-members": lambda size: ("{" + _OBJECT + "," + ",".join(numbered('"unknown{i}":1', size)) + "}").encode(),
    "unknown-in-list": _member("unknown", lambda size: "[" + ",".join(numbered('{"u{i}":1}', size)) + "]"),
    "equal-members": lambda size: ("{" + ",".join(['"kind":"ConfigMap"'] * (size // 19)) + "}").encode(),
    "equal-unknown": lambda size: ("{" + _OBJECT + ',"u":1' * (size // 6) + "}").encode(),
    "case-members": lambda size: ("{" + _OBJECT + "," + ",".join(['"Data":{}'] * (size // 10)) + "}").encode(),
    "number": _member("immutable", lambda size: "1" * size),
    "exponent": _member("immutable", lambda size: "1e" + "9" * size),
    "fraction": _member("immutable", lambda size: "0." + "0" * size + "1"),
    "escapes": _member("kind2", lambda size: '"' + "\\u0061" * (size // 6) + '"'),
    "surrogates": _member("kind2", lambda size: '"' + "\\ud800" * (size // 6) + '"'),
    "bad-utf8": lambda size: b'{"data":{"a":"' + b"\xff" * size + b'"}}',
    "spaces": lambda size: b" " * size + b"{}",
    "kinds": lambda size: json.dumps({"apiVersion": "v1", "kind": "a" * size}).encode(),
    "versions": lambda size: json.dumps({"apiVersion": "a/" * (size // 2), "kind": "ConfigMap"}).encode(),
    "operations-test": lambda size: (
        b"[" + b",".join([b'{"op":"test","path":"/metadata/name","value":"document"}'] * (size // 57)) + b"]"
    ),
    "operations-copy": lambda size: (
        b"[" + b",".join([b'{"op":"copy","from":"/metadata","path":"/metadata/labels"}'] * min(size // 60, 9999)) + b"]"
    ),
    "operations-path": lambda size: json.dumps([{"op": "add", "path": "/a" * (size // 2), "value": 1}]).encode(),
    "operations-escapes": lambda size: json.dumps([{"op": "remove", "path": "/" + "~0~1" * (size // 4)}]).encode(),
    "operations-growing": lambda size: (
        b'[{"op":"add","path":"/data","value":{"a":"'
        + b"x" * (size // 2)
        + b'"}},'
        + b",".join(b'{"op":"copy","from":"/data/a","path":"/data/b%d"}' % i for i in range(min(size // 100, 9000)))
        + b"]"
    ),
    "directives": lambda size: (
        '{"metadata":{"$deleteFromPrimitiveList/finalizers":[' + ",".join(numbered('"a{i}"', size)) + "]}}"
    ).encode(),
    "order": lambda size: (
        '{"metadata":{"$setElementOrder/ownerReferences":[' + ",".join(numbered('{"uid":"{i}"}', size)) + "]}}"
    ).encode(),
    "nulls": lambda size: ('{"data":{' + ",".join(numbered('"k{i}":null', size)) + "}}").encode(),
}
_YAML: Final[dict[str, Form]] = {
    "flow-lists": lambda size: b"# a\n" + b"[" * (size // 2) + b"]" * (size // 2),
    "flow-objects": lambda size: b"# a\n" + b"{a: " * (size // 5) + b"}" * (size // 5),
    "block-deep": lambda size: "\n".join(" " * depth + "a:" for depth in range(int((2 * size) ** 0.5))).encode(),
    "dashes-deep": lambda size: b"- " * (size // 2),
    "keys-deep": lambda size: b"? " * (size // 2),
    "integer-keys": lambda size: "\n".join(numbered("{i}: a", size)).encode(),
    "float-keys": lambda size: "\n".join(numbered("{i}.5: a", size)).encode(),
    "boolean-keys": lambda size: b"true: a\n" * (size // 8),
    "equal-keys": lambda size: b"a: b\n" * (size // 5),
    "aliases": lambda size: (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "\n".join(
            f"b{i}: &b{i} [{','.join(['*' + ('a' if not i else f'b{i - 1}')] * 9)}]" for i in range(size // 60)
        ).encode()
    ),
    "many-aliases": lambda size: b"a: &a {b: c}\nl: [" + b"*a," * (size // 3) + b"]\n",
    "aliased-text": lambda size: b"a: &a " + b"x" * (size // 2) + b"\nl: [" + b"*a," * (size // 6) + b"]\n",
    "aliased-short-texts": lambda size: b"a: &a " + b"x" * 511 + b"\nl: [" + b"*a," * (size // 3) + b"]\n",
    "aliased-objects": lambda size: b"a: &a [" + b"{}," * (size // 4) + b"]\nl: [" + b"*a," * 90 + b"]\n",
    "anchors": lambda size: "\n".join(numbered("k{i}: &a{i} b", size)).encode(),
    "merges": lambda size: b"a: &a {b: c}\nd:\n" + b"  <<: *a\n" * (size // 9),
    "merge-chain": lambda size: (
        b"k: &k0 {a: b}\n" + "\n".join(f"m{i}: &k{i + 1} {{<<: *k{i}, x{i}: y}}" for i in range(size // 30)).encode()
    ),
    "documents": lambda size: b"---\na: b\n" * (size // 9),
    "comments": lambda size: b"# a\n" * (size // 4) + b"a: b\n",
    "tags": lambda size: b"\n".join([b"- !!str a"] * (size // 10)),
    "long-tag": lambda size: b"!" + b"a" * size + b" b",
    "binary": lambda size: b"a: !!binary " + b"AAEC" * (size // 4),
    "folded": lambda size: b"a: >\n" + b"  b\n" * (size // 4),
    "plain-lines": lambda size: b"a: b\n" + b"  c\n" * (size // 4),
    "quoted-escapes": lambda size: b'a: "' + b"\\x41" * (size // 4) + b'"',
    "sexagesimal": lambda size: b"a: 1" + b":1" * (size // 2),
    "integer": lambda size: b"a: " + b"1" * size,
    "octal": lambda size: b"a: 0o" + b"7" * size,
    "binary-number": lambda size: b"a: 0b" + b"1" * size,
    "underscores": lambda size: b"a: 1" + b"_" * size,
    "timestamps": lambda size: b"- 2001-12-14t21:59:43.10-05:00\n" * (size // 31),
    "spaces": lambda size: b"a:" + b" " * size + b"b",
    "tabs": lambda size: b"a:" + b"\t" * size + b"b",
    "newlines": lambda size: b"\n" * size + b"a: b",
    "percent": lambda size: b"%YAML 1.1\n" * (size // 10) + b"---\na: b",
    "bad-utf8": lambda size: b"a: " + b"\xff" * size,
    "utf-16": lambda size: ("a: " + "b" * (size // 2)).encode("utf-16"),
}


def _group(key: int, body: bytes) -> bytes:
    return varint(key << 3 | 2) + varint(len(body)) + body


def _configmap(body: bytes) -> bytes:
    return protobuf.envelope(body, GroupVersionKind("", "v1", "ConfigMap"))


def _nested_message(size: int) -> bytes:
    """A schema within a schema within a schema: spec.versions[].schema.openAPIV3Schema.not.not..."""
    body, depth = b"", 0
    while len(body) < min(size, 200_000) and depth < 50_000:
        body, depth = _group(28, body), depth + 1
    schema = _group(1, body)
    spec = _group(7, _group(4, schema))
    return protobuf.envelope(
        _group(2, spec), GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    )


_PROTOBUF: Final[dict[str, tuple[str, Form]]] = {
    "groups": (_CONFIGMAPS, lambda size: _configmap(b"\x7b" * (size // 2) + b"\x7c" * (size // 2))),
    "unknown-fields": (_CONFIGMAPS, lambda size: _configmap(b"\xf8\x07\x01" * (size // 3))),
    "empty-metadata": (_CONFIGMAPS, lambda size: _configmap(b"\n\0" * (size // 2))),
    "empty-entries": (_CONFIGMAPS, lambda size: _configmap(b"\x12\0" * (size // 2))),
    "entries": (
        _CONFIGMAPS,
        lambda size: _configmap(
            b"".join(_group(2, _group(1, str(i).encode()) + _group(2, b"a")) for i in range(size // 12))
        ),
    ),
    "long-varint": (_CONFIGMAPS, lambda size: _configmap(b"\xf8" + b"\xff" * size)),
    "long-lengths": (_CONFIGMAPS, lambda size: _configmap(b"\x12\x80\x80\x80\x80\x00" * (size // 6))),
    "envelopes": (_CONFIGMAPS, lambda size: b"k8s\0" + b"\n\0" * (size // 2)),
    "schemas": (_DEFINITIONS, _nested_message),
}


def cases() -> Iterator[Case]:
    """Every form wherever it is read."""
    for names, forms, label in ((_JSON_WHERE, _JSON, "json"), (_YAML_WHERE, _YAML, "yaml")):
        for form, write in forms.items():
            for where in names:
                for token in (NARROW, ANONYMOUS) if where == "create" else (NARROW,):
                    name = f"documents/{label}/{form}/{where}/{USERS[token]}"
                    yield Case(name, _Sent(*_WHERE[where], write, token), f"{label}/{form}")
    for form, (path, write) in _PROTOBUF.items():
        token = NARROW if path == _CONFIGMAPS else ADMIN
        make = _Sent("POST", f"{path}?dryRun=All", "application/vnd.kubernetes.protobuf", write, token)
        yield Case(f"documents/protobuf/{form}", make, f"protobuf/{form}")


class _Sent:
    """Sends a form somewhere."""

    def __init__(self, method: str, path: str, media: str, write: Form, token: str) -> None:
        self._method, self._path, self._media, self._write, self._token = method, path, media, write, token

    def __call__(self, size: int, target: Target) -> Message | None:
        if self._method == "PATCH":
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "document"}, "data": {"a": "b"}}
            target.existing(f"{_CONFIGMAPS}/document", _CONFIGMAPS, body)
        headers = (("Content-Type", self._media), ("Accept", "application/json"))
        return Request(self._method, self._path, headers, self._write(size)[:3_000_000], self._token)
