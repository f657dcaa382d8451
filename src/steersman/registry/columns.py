"""Columns that Tables of several kinds share."""

from __future__ import annotations

from typing import Final

from steersman.rest.resource import Column

CREATED_AT: Final = Column("Created At", lambda obj: obj.metadata.creation_timestamp, type="date")
"""What kinds without columns of their own show beside the name."""
