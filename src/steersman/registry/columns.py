"""Columns and cells that the Tables of several kinds share."""

from __future__ import annotations

from typing import Final

from steersman.api.meta.v1 import LabelSelector
from steersman.machinery.selectors.labels import SelectorError, from_label_selector, selector_from_set
from steersman.rest.resource import Column

CREATED_AT: Final = Column("Created At", lambda obj: obj.metadata.creation_timestamp, type="date")
"""The column after Name of kinds that have no columns of their own."""


def label_selector_text(selector: LabelSelector | None) -> str:
    """Return a selector as `kubectl get -l` takes it, `<none>` if it selects everything or nothing."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except SelectorError:
        return "<error>"


def labels_text(labels: dict[str, str]) -> str:
    """Return labels as `key=value,...`, `<none>` if there are none."""
    return str(selector_from_set(labels)) or "<none>"
