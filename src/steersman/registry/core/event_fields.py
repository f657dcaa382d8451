"""Selectable fields of Events in events.k8s.io/v1; Events are stored as core/v1."""

from __future__ import annotations

from typing import Final

SELECTABLE_FIELDS: Final = {
    "reason": "reason",
    "regarding.kind": "involvedObject.kind",
    "regarding.namespace": "involvedObject.namespace",
    "regarding.name": "involvedObject.name",
    "regarding.uid": "involvedObject.uid",
    "regarding.apiVersion": "involvedObject.apiVersion",
    "regarding.resourceVersion": "involvedObject.resourceVersion",
    "regarding.fieldPath": "involvedObject.fieldPath",
    "reportingController": "reportingComponent",
    "type": "type",
}
"""Names of selectable fields in events.k8s.io/v1 -> names in core/v1."""
