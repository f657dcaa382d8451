"""Entries of history as JSON: the type of a write, its origin, its managers, and what it changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from steersman.machinery.codec.serializer import decode_plain, encode_in_order
from steersman.machinery.differences import MISSING, Difference, differences, shown_path
from steersman.machinery.values.times import format_micro_time
from steersman.storage.interface import Change

HIDDEN: Final = "<hidden>"
"""Text in place of a value of a Secret."""
_MOST_CHANGES: Final = 100
_MOST_MANAGERS: Final = 20
_LONGEST_VALUE: Final = 1024
"""Characters of a value's JSON, beyond which it is cut."""
_LONGEST_PATH: Final = 1024
_UNSHOWN: Final = ("managedFields", "resourceVersion")
"""Members of metadata that every write changes."""


class Write(Struct):
    """A write to be shown: the objects before and after it, encoded in the requested version.

    A body is None without an object, and `unreadable` tells why an object that exists has none.
    """

    change: Change
    before: bytes | None
    after: bytes | None
    namespace: str
    name: str
    unreadable: str = ""


def entry(write: Write, *, hides: bool, with_object: bool) -> bytes:
    """Return the entry of a write; with `hides` values of a Secret are left out."""
    event, record = write.change.event, write.change.record
    shown: dict[str, Any] = {"revision": str(event.revision), "type": _type_of(write.change)}
    if write.namespace:
        shown["namespace"] = write.namespace
    shown["name"] = write.name
    if record is not None:
        shown["time"] = time_text(record.milliseconds)
        origin = record.origin
        texts = (origin.verb, origin.subresource, origin.user, origin.user_agent, origin.audit_id)
        shown |= {
            name: text
            for name, text in zip(("verb", "subresource", "user", "userAgent", "auditID"), texts, strict=True)
            if text
        }
    if write.unreadable:
        return encode_in_order({**shown, "unreadable": write.unreadable})
    before, after = _decoded(write.before), _decoded(write.after)
    if after is not None and (managers := managers_of(before or {}, after)):
        shown["managers"] = managers
    if before is not None and after is not None:
        shown |= changes_of(before, after, hides=hides)
    if with_object and after is not None:
        shown["object"] = hidden(after) if hides else after
    return encode_in_order(shown)


def time_text(milliseconds: int) -> str:
    """Return a time in milliseconds since 1970 as a MicroTime."""
    return format_micro_time(datetime.fromtimestamp(milliseconds / 1000, UTC))


def _type_of(change: Change) -> str:
    event = change.event
    if event.current is None:
        return "DELETED"
    return "ADDED" if event.current.create_revision == event.revision else "MODIFIED"


def _decoded(body: bytes | None) -> dict[str, Any] | None:
    if body is None:
        return None
    plain: dict[str, Any] = decode_plain(body)
    return plain


def managers_of(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the field managers that a write has given fields to."""
    known = {_identity(each): each.get("fieldsV1") for each in _managed_fields(before)}
    found: dict[str, None] = {}
    for each in _managed_fields(after):
        identity = _identity(each)
        if identity not in known or any(
            gained.before is MISSING for gained in differences(known[identity], each.get("fieldsV1"))
        ):
            found[str(each.get("manager", ""))] = None
    return list(found)[:_MOST_MANAGERS]


def _identity(fields: dict[str, Any]) -> tuple[str, ...]:
    """Return the members of an entry of managedFields that identify it."""
    return tuple(str(fields.get(name, "")) for name in ("manager", "operation", "apiVersion", "subresource"))


def _managed_fields(obj: dict[str, Any]) -> list[dict[str, Any]]:
    fields = obj.get("metadata", {}).get("managedFields")
    return [each for each in fields if isinstance(each, dict)] if isinstance(fields, list) else []


def changes_of(before: dict[str, Any], after: dict[str, Any], *, hides: bool) -> dict[str, Any]:
    """Return the changes of a write as members of its entry; with `hides` without values of a Secret."""
    changes: list[dict[str, Any]] = []
    count = 0
    for each in differences(_shown_part(before), _shown_part(after)):
        count += 1
        if count <= _MOST_CHANGES:
            changes.append(_shown_change(each, hides=hides and _is_secret(each)))
    return {"changes": changes} | ({"moreChanges": count - _MOST_CHANGES} if count > _MOST_CHANGES else {})


def _shown_part(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name not in _UNSHOWN}}


def _is_secret(found: Difference) -> bool:
    """Return True if a difference of two Secrets is in their data, or contains a copy of these."""
    path = found.path
    return path[:1] in (("data",), ("stringData",)) or path[:2] == ("metadata", "annotations")


def _shown_change(found: Difference, *, hides: bool) -> dict[str, Any]:
    op = "changed"
    if found.is_order:
        op = "ordered"
    elif found.before is MISSING:
        op = "added"
    elif found.after is MISSING:
        op = "removed"
    shown: dict[str, Any] = {"path": shown_path(found.path)[:_LONGEST_PATH], "op": op}
    if hides:
        return shown | {"hidden": True}
    for name, value in (("from", found.before), ("to", found.after)):
        if value is not MISSING:
            text = json.dumps(value, ensure_ascii=False)
            shown[name] = value if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
            if len(text) > _LONGEST_VALUE:
                shown["truncated"] = True
    return shown


def hidden(obj: dict[str, Any]) -> dict[str, Any]:
    """Return a Secret without its values, and without those of its annotations: many tools keep copies of data there."""
    shown = dict(obj)
    for name in ("data", "stringData"):
        if isinstance(data := shown.get(name), dict):
            shown[name] = dict.fromkeys(data, HIDDEN)
    metadata = shown.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(annotations, dict):
        shown["metadata"] = {**metadata, "annotations": dict.fromkeys(annotations, HIDDEN)}
    return shown


def joined(head: dict[str, Any], entries: Iterator[bytes]) -> bytes:
    """Return a page: the members of `head`, then the encoded entries as `items`."""
    return b'%b,"items":[%b]}\n' % (encode_in_order(head)[:-1], b",".join(entries))
