"""Paths of the fields that an update has changed, for reports on requests: values are not told."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from steersman.machinery.differences import Key, Step, differences, shown_path

MOST_FIELDS: Final = 20
_LONGEST: Final = 256
"""Characters of a path."""
_OF_SERVER: Final = ("managedFields", "resourceVersion", "generation")
"""Members of metadata that the server sets at each write."""


def changed_fields(before: bytes, after: bytes) -> list[str]:
    """Return the paths of the fields that differ between two states of an object in JSON, at most MOST_FIELDS.

    Items of lists are named by their keys; a list of plain values is named as a whole.
    """
    old, new = _without_server_fields(before), _without_server_fields(after)
    found = (shown_path(_without_values(each.path))[:_LONGEST] for each in differences(old, new))
    return list(dict.fromkeys(islice(found, MOST_FIELDS)))


def _without_server_fields(data: bytes) -> Any:
    found = msgspec.json.decode(data)
    metadata = found.get("metadata")
    if isinstance(metadata, dict):
        for each in _OF_SERVER:
            metadata.pop(each, None)
    return found


def _without_values(path: Sequence[Step]) -> Sequence[Step]:
    """Return a path that ends before the first item that is named by its own value."""
    for number, step in enumerate(path):
        if isinstance(step, Key) and not step.member:
            return path[:number]
    return path
