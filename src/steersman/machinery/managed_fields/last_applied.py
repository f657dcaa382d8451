"""The last-applied annotation, kept in step with kubectl's server-side applies (apimachinery `lastapplied`)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from steersman.machinery.codec.serializer import decode_plain, encode

from .comparison import compare
from .field_set import EMPTY, FieldSet, difference
from .schema import Schema
from .typed_error import TypedError
from .typed_value import field_set, validate

KUBECTL: Final = "kubectl"
"""The manager whose server-side applies take over the fields of its earlier client-side applies."""
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATIONS: Final = 256 * 1024


def last_applied(obj: dict[str, Any]) -> str:
    """Return the configuration that was last applied on the client's side, "" if there is none."""
    metadata = obj.get("metadata") or {}
    text = (metadata.get("annotations") or {}).get(ANNOTATION, "")
    return text if isinstance(text, str) else ""


def allowed_conflicts(schema: Schema, live: dict[str, Any], api_version: str) -> FieldSet:
    """Return the fields that the annotation has and that are unchanged since: kubectl may take these over without
    force.
    """
    text = last_applied(live)
    if not text:
        return EMPTY
    try:
        applied = decode_plain(text.encode())
        if not isinstance(applied, dict) or applied.get("apiVersion") != api_version:
            return EMPTY
        validate(schema.root, live)
        validate(schema.root, applied)
        fields = field_set(schema.root, applied)
        comparison = compare(schema.root, applied, live)
    except (TypedError, msgspec.DecodeError, RecursionError):
        return EMPTY
    return difference(difference(fields, comparison.changed), comparison.removed)


def with_last_applied(obj: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    """Return `obj` with the applied configuration in the annotation.

    The annotation is left out if it would make the annotations too large.
    """
    metadata = dict(obj["metadata"])
    annotations = _without_nulls(metadata["annotations"])
    annotations[ANNOTATION] = (encode(_without_annotation(applied)) + b"\n").decode()
    size = sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
    if size > MAX_ANNOTATIONS:
        del annotations[ANNOTATION]
    metadata["annotations"] = annotations
    return {**obj, "metadata": metadata}


def _without_annotation(applied: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration as the annotation holds it: without the annotation itself, and with "" for null
    annotations.
    """
    metadata = applied.get("metadata")
    if not isinstance(metadata, dict) or "annotations" not in metadata:
        return applied
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    if metadata["annotations"] is not None:
        rest["annotations"] = _without_nulls(metadata["annotations"])
        rest["annotations"].pop(ANNOTATION, None)
    return {**applied, "metadata": rest}


def _without_nulls(annotations: dict[str, Any]) -> dict[str, str]:
    return {name: "" if value is None else value for name, value in annotations.items()}
