"""The ways in which an object reaches a server: created, updated, applied and patched, in every form there is."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

from steersman.machinery.codec.protobuf import documents as protobuf
from steersman.machinery.codec.serializer import decoder
from steersman.machinery.identity.schema import GroupVersionKind

from .case import ADMIN, NARROW, Request, Target
from .fields import Field, Subject, fragment, placed, pointer

_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_APPLY: Final = "application/apply-patch+yaml"

Way = Callable[[Subject, Field, str, Target], Request | None]


def token_for(subject: Subject) -> str:
    """The narrow user where a namespace is enough."""
    return NARROW if subject.sample.resource.namespaced else ADMIN


def _sent(subject: Subject, method: str, path: str, media: str, body: bytes, query: str = "dryRun=All") -> Request:
    headers = (("Content-Type", media), ("Accept", _JSON))
    return Request(method, f"{path}?{query}", headers, body, token_for(subject))


def _created(media: str, write: Callable[[Subject, str], bytes | None]) -> Way:
    def make(subject: Subject, field: Field, full: str, target: Target) -> Request | None:
        text = placed(_named(subject.body), subject.sample.type, field.path, full)
        body = write(subject, text)
        return None if body is None else _sent(subject, "POST", subject.collection, media, body)

    return make


def _updated(media: str, write: Callable[[Subject, str], bytes | None]) -> Way:
    def make(subject: Subject, field: Field, full: str, target: Target) -> Request | None:
        found = target.existing(subject.path, subject.collection, subject.body)
        metadata = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
        found = {**found, "metadata": metadata}
        body = write(subject, placed(found, subject.sample.type, field.path, full))
        path = subject.path + ("/status" if field.in_status and subject.sample.has_status else "")
        return None if body is None else _sent(subject, "PUT", path, media, body)

    return make


def _applied(write: Callable[[Subject, str], bytes | None]) -> Way:
    def make(subject: Subject, field: Field, full: str, target: Target) -> Request | None:
        target.existing(subject.path, subject.collection, subject.body)
        body = write(subject, placed(subject.body, subject.sample.type, field.path, full))
        if body is None:
            return None
        path = subject.path + ("/status" if field.in_status and subject.sample.has_status else "")
        return _sent(subject, "PATCH", path, _APPLY, body, "fieldManager=hostile&force=true&dryRun=All")

    return make


def _patched(media: str) -> Way:
    def make(subject: Subject, field: Field, full: str, target: Target) -> Request | None:
        found = target.existing(subject.path, subject.collection, subject.body)
        body = fragment(subject.sample.type, field.path, found, full).encode()
        return _sent(subject, "PATCH", subject.path, media, body)

    return make


def _json_patched(subject: Subject, field: Field, full: str, target: Target) -> Request | None:
    found = target.existing(subject.path, subject.collection, subject.body)
    path = json.dumps(pointer(found, subject.sample.type, field.path))
    body = f'[{{"op":"add","path":{path},"value":{full}}}]'.encode()
    return _sent(subject, "PATCH", subject.path, "application/json-patch+json", body)


def _json_patched_by_item(subject: Subject, field: Field, full: str, target: Target) -> Request | None:
    """One operation for each item, as many as the server takes."""
    items = json.loads(full)
    if not isinstance(items, list | dict):
        return None
    found = target.existing(subject.path, subject.collection, subject.body)
    path = pointer(found, subject.sample.type, field.path)
    pairs = [("-", each) for each in items] if isinstance(items, list) else list(items.items())
    operations: list[dict[str, Any]] = [{"op": "add", "path": path, "value": type(items)()}]
    operations += [{"op": "add", "path": f"{path}/{key}", "value": each} for key, each in pairs[:9_999]]
    body = json.dumps(operations, separators=(",", ":")).encode()
    return _sent(subject, "PATCH", subject.path, "application/json-patch+json", body)


def _named(body: dict[str, Any]) -> dict[str, Any]:
    """Under another name than the object that is there."""
    if "name" not in body["metadata"]:
        return body
    return {**body, "metadata": {**body["metadata"], "name": body["metadata"]["name"] + "-new"}}


# Forms


def _as_json(_: Subject, text: str) -> bytes:
    return text.encode()


def _as_flow(_: Subject, text: str) -> bytes:
    """YAML that is no JSON, because of a comment."""
    return b"# an object\n" + text.encode()


def _as_block(_: Subject, text: str) -> bytes:
    lines: list[str] = []
    _block(json.loads(text, parse_int=_Digits, parse_float=_Digits), "", lines, "")
    return "\n".join(lines).encode() + b"\n"


class _Digits(str):
    """A number as it was written: reading one of a million digits takes Python minutes."""


def _scalar(value: Any) -> str:
    return value if isinstance(value, _Digits) else json.dumps(value)


def _block(value: Any, indent: str, lines: list[str], head: str) -> None:
    """Block style, a line for each scalar; keys and texts are quoted as JSON has them."""
    if isinstance(value, dict) and value:
        if head:
            lines.append(f"{indent}{head}")
            indent += "  "
        for key, each in value.items():
            _block(each, indent, lines, json.dumps(key) + ":")
    elif isinstance(value, list) and value:
        if head:
            lines.append(f"{indent}{head}")
        for each in value:
            if isinstance(each, dict | list) and each:
                inner: list[str] = []
                _block(each, indent + "  ", inner, "")
                inner[0] = f"{indent}- {inner[0][len(indent) + 2 :]}"
                lines += inner
            else:
                lines.append(f"{indent}- {_scalar(each)}")
    else:
        lines.append(f"{indent}{head} {_scalar(value)}".rstrip())


def _as_protobuf(subject: Subject, text: str) -> bytes | None:
    group, _, version = subject.sample.api_version.rpartition("/")
    package, _, name = subject.sample.type.name.rpartition(".")
    cls = getattr(importlib.import_module(f"steersman.api.{package}"), name)
    try:
        return protobuf.encode(decoder(cls).decode(text), GroupVersionKind(group, version, subject.body["kind"]))
    except (msgspec.DecodeError, TypeError, ValueError):
        return None  # JSON can say what protobuf cannot


CREATES: Final = "create-"
"""Prefix of the names of ways that need no existing object."""
WAYS: Final[dict[str, Way]] = {
    "create-json": _created(_JSON, _as_json),
    "create-yaml-flow": _created(_YAML, _as_flow),
    "create-yaml-block": _created(_YAML, _as_block),
    "create-protobuf": _created(_PROTOBUF, _as_protobuf),
    "update-json": _updated(_JSON, _as_json),
    "update-protobuf": _updated(_PROTOBUF, _as_protobuf),
    "apply-json": _applied(_as_json),
    "apply-yaml": _applied(_as_block),
    "strategic": _patched("application/strategic-merge-patch+json"),
    "merge": _patched("application/merge-patch+json"),
    "json-patch": _json_patched,
    "json-patch-items": _json_patched_by_item,
}
