"""JSON Merge Patch (RFC 7386) on plain values, as kube-apiserver's library does it.

That library (evanphx/json-patch v4) differs from the RFC in lists: nulls are dropped from objects inside a list that
replaces a list or a scalar. Changed objects get their members sorted, which clients see where an error shows the
result.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from steersman.machinery.errors import status as errors
from steersman.machinery.patch.json_patch import json_type
from steersman.work.offloading import expect_offloading
from steersman.work.threads import paced

INVALID_PATCH: Final = "Invalid JSON Patch"


def apply(document: dict[str, Any], patch: Any, *, strict: bool = True) -> Any:
    """Return the document merged with `patch`. Both are unchanged and may share parts with the result.

    `strict` is for the field validation directives Warn and Strict, which refuse a list with another message. Raises
    StatusError 400 for data that is not a merge patch. If not `strict`, a patch that is a list becomes the result.
    """
    expect_offloading()
    if isinstance(patch, dict):
        try:
            return _merge(document, patch)
        except RecursionError:
            raise errors.bad_request("the patch is nested too deeply") from None
    if patch is not None and strict:
        text = f"json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}"
        raise errors.bad_request(f"error decoding patch: {text}")
    if isinstance(patch, list):
        return _pruned(patch)
    raise errors.bad_request(INVALID_PATCH)


def merge_patch_of(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the patch that leads from one object to the other, as far as a merge patch can: lists are replaced whole."""
    patch: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        known = before.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            inner = merge_patch_of(known, value)
            if inner:
                patch[key] = inner
        elif key not in before or known != value or type(known) is not type(value):
            patch[key] = value
    return patch


_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_BRACE: Final = ord("{")


def members_for(document: bytes | msgspec.Raw, patch: Any) -> dict[str, Any]:
    """Return a document as `apply` needs it for this patch: objects that it reaches as dicts, all else as JSON.

    The document is one that this server has encoded, so that no member is in it twice.
    """
    members: dict[str, Any] = _members(document)
    for name in paced(patch) if isinstance(patch, dict) else ():
        member = members.get(name)
        if member is not None and memoryview(member)[0] == _BRACE:
            members[name] = members_for(member, patch[name])
    return members


def _merge(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = document.copy()
    for key, change in paced(patch.items()):
        if change is None:
            merged.pop(key, None)
            continue
        current = merged.get(key)
        if not isinstance(current, dict):
            merged[key] = _pruned(change)
        elif isinstance(change, dict):
            merged[key] = _merge(current, change)
        else:
            merged[key] = change
    return _sorted(merged)


def _pruned(value: Any) -> Any:
    """Return `value` without null members of objects, at any depth."""
    if isinstance(value, dict):
        return _sorted({key: _pruned(member) for key, member in value.items() if member is not None})
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    return value


def _sorted(members: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(members.items()))
