"""What events.k8s.io/v1 calls the selectable fields of Events, which are stored as core/v1 has them."""

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
"""Names of selectable fields here -> in core/v1."""
