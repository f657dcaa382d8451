"""Columns of Tables that several resources share."""

from __future__ import annotations

from steersman.endpoints.table import column_definitions
from steersman.registry.columns import AGE, CREATED_AT


def test_created_at_is_described_as_the_age_is() -> None:
    age, created_at = column_definitions([AGE, CREATED_AT])
    assert created_at["description"].startswith("CreationTimestamp is a timestamp representing the server time")
    assert created_at["description"] == age["description"]
