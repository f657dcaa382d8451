"""Columns and cells that Tables of several kinds share."""

from __future__ import annotations

from typing import Final

from steersman.api.meta.v1 import LabelSelector
from steersman.machinery.selectors.labels import SelectorError, from_label_selector, selector_from_set
from steersman.rest.resource import Column

CREATED_AT: Final = Column("Created At", lambda obj: obj.metadata.creation_timestamp, type="date")
"""What kinds without columns of their own show beside the name."""


def label_selector_text(selector: LabelSelector | None) -> str:
    """A selector as `kubectl get -l` takes it, `<none>` if it selects everything or nothing."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except SelectorError:
        return "<error>"


def labels_text(labels: dict[str, str]) -> str:
    """Labels as `key=value,...`, `<none>` without any."""
    return str(selector_from_set(labels)) or "<none>"
