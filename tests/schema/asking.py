"""What the tests of schemas share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steersman.machinery.errors.field import FieldError, Path
from steersman.schema import SchemaChecks, Structural, compile_schema, schema_errors

PATH = Path("schema")

Told = list[tuple[str, str]]


def of(**properties: Any) -> dict[str, Any]:
    """The schema of an object with these properties."""
    return {"type": "object", "properties": properties}


def compiled(**properties: Any) -> Structural:
    """The same, compiled."""
    return compile_schema(of(**properties))


def told(errors: Iterable[FieldError]) -> Told:
    """Where errors are, and what they say."""
    return [(each.field, each.body) for each in errors]


def refused(plain: Any, *, status_enabled: bool = False, checks: SchemaChecks | None = None) -> Told:
    """What a definition with that schema is refused with."""
    return told(schema_errors(plain, PATH, checks or SchemaChecks(), status_enabled=status_enabled))
