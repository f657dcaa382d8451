"""Patches: a document and a patch, with a NUL between them."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any, Final

from steersman.api.core.v1 import Pod
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.go_types import struct_of
from steersman.machinery.codec.serializer import encode, from_plain
from steersman.machinery.codec.strict import DecodeError, decode_untyped
from steersman.machinery.errors.status import StatusError
from steersman.machinery.managed_fields import Applier, FieldManager
from steersman.machinery.patch import json_patch, merge_patch, strategic_merge_patch
from tools.fuzz.target import Target, same

_TIME: Final = "2026-01-01T00:00:00Z"


class _NoDocument(ValueError):
    """One half of an input is not what it has to be for the patch to be looked at."""


def _halves(data: bytes) -> tuple[dict[str, Any], Any]:
    document, _, patch = data.partition(b"\0")
    untyped = decode_untyped(document)
    if not isinstance(untyped, dict):
        raise _NoDocument
    return untyped, decode_untyped(patch)


def as_json_patch(data: bytes) -> str:
    """The document given stays as it is, and the result can be written."""
    document, patch = _halves(data)
    before = copy.deepcopy(document)
    operations, _ = json_patch.decode(patch, strict=True)
    try:
        found = json_patch.apply(document, operations)
    finally:
        same(document, before, "the document that was patched")
    encode(found)
    return type(found).__name__


def as_merge_patch(data: bytes) -> str:
    """Merged again, a patch changes nothing more."""
    document, patch = _halves(data)
    before = copy.deepcopy(document)
    found = merge_patch.apply(document, patch)
    same(document, before, "the document that was patched")
    same(merge_patch.apply(found, patch), found, "a document patched again")
    return type(found).__name__


def as_strategic_merge_patch(data: bytes) -> str:
    """Check a strategic merge patch of a Pod."""
    document, patch = _halves(data)
    if not isinstance(patch, dict):
        raise _NoDocument
    encode(strategic_merge_patch.apply(document, patch, struct_of(Pod)))
    return "map"


@cache
def _applier() -> Applier:
    return Applier(FieldManager(built_in(Pod)))


def as_apply(data: bytes) -> str:
    """A Pod applied to another. Applied again by the same manager, it changes nothing and owns the same."""
    document, patch = _halves(data)
    if not isinstance(patch, dict):
        raise _NoDocument
    live = _pod(document)
    live.metadata.managed_fields = []
    once = _applier().apply(live, copy.deepcopy(patch), "m", _TIME, force=True)
    if once.obj is None:
        return "nothing changed"
    applied = _pod(once.obj)
    applied.metadata.managed_fields = once.entries
    twice = _applier().apply(applied, copy.deepcopy(patch), "m", _TIME, force=True)
    if twice.obj is not None:
        same(_pod(twice.obj), _pod(once.obj), "a pod applied again")
    same(twice.entries, once.entries, "who owns the fields of a pod applied again")
    return str(len(once.entries))


def _pod(plain: dict[str, Any]) -> Pod:
    try:
        return from_plain(Pod, plain)
    except ValueError as error:
        raise _NoDocument from error


_WORDS: Final = (
    b'{"a":{"b":1},"c":[1,2]}',
    b"\0",
    b'[{"op":"add","path":"/a","value":1}]',
    b'{"op":"remove","path":"/a"}',
    b"/a/b",
    b'{"op":"move","from":"/a","path":"/c/-"}',
    b'{"op":"copy","from":"/a","path":"/b"}',
    b'"test"',
    b'"replace"',
    b"~1",
    b"~0",
    b"/c/-",
    b"/c/-1",
    b"null",
    b'"$patch":"delete"',
    b'"$patch":"replace"',
    b'"$retainKeys":["a"]',
    b'"$setElementOrder/containers":[{"name":"a"}]',
    b'"$deleteFromPrimitiveList/finalizers":["a"]',
    b'"spec":{',
    b'"containers":[{"name":"a","image":"i"}]',
    b'"metadata":{"labels":{"a":"b"}}',
    b'"finalizers":["a"]',
    b'"name":"b"',
    b'"ports":[{"containerPort":80,"protocol":"TCP"}]',
    b'"env":[{"name":"E","value":"1"}]',
    b'"tolerations":[{}]',
    b'"apiVersion":"v1","kind":"Pod"',
    b'"volumes":[{"name":"v","emptyDir":{}}]',
    b'"ownerReferences":[{"uid":"u"}]',
)
_DECLARED: Final = (_NoDocument, DecodeError, StatusError)

TARGETS: Final = (
    Target("json-patch", as_json_patch, (*_DECLARED, json_patch.PatchError), _WORDS),
    Target("merge-patch", as_merge_patch, _DECLARED, _WORDS),
    Target("strategic-merge-patch", as_strategic_merge_patch, _DECLARED, _WORDS),
    Target("apply", as_apply, _DECLARED, _WORDS),
)
