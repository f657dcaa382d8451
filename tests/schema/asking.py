"""Helpers of the tests of schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steersman.machinery.errors.field import FieldError, Path
from steersman.schema import SchemaChecks, Structural, compile_schema, schema_errors

PATH = Path("schema")

Told = list[tuple[str, str]]


def of(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties."""
    return {"type": "object", "properties": properties}


def compiled(**properties: Any) -> Structural:
    """Return the compiled schema of an object with these properties."""
    return compile_schema(of(**properties))


def told(errors: Iterable[FieldError]) -> Told:
    """Return the fields and the texts of errors."""
    return [(each.field, each.body) for each in errors]


def refused(plain: Any, *, status_enabled: bool = False, checks: SchemaChecks | None = None) -> Told:
    """Return the errors of a definition with that schema."""
    return told(schema_errors(plain, PATH, checks or SchemaChecks(), status_enabled=status_enabled))
