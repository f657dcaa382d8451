"""The interface to the validation of rules (`x-kubernetes-validations`), which is implemented where CEL is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from steersman.machinery.errors.field import FieldError, Path

from .nodes import Node


class SchemaPosition(NamedTuple):
    """A subschema of a version's schema, on a path without allOf, anyOf, oneOf and not.

    `parent` and `step` tell the path: "properties", "items" or "additionalProperties", and `name` the name of the
    property. `uncorrelatable` is the outermost schema on the path whose values cannot be correlated between updates.
    """

    schema: Mapping[str, Any]
    path: Path
    parent: SchemaPosition | None
    step: str
    name: str
    uncorrelatable: Path | None
    node: Node | None = None
    """The compiled schema, if it exists already."""


class RuleValidator(Protocol):
    """A validator of the rules in one schema, and of its other expressions."""

    def default_errors(self, node: Node, value: Any, path: Path, *, is_root: bool) -> Iterable[FieldError]:
        """Return the errors of a default by the rules of its schema and subschemas."""
        ...

    def rule_errors(self, place: SchemaPosition) -> Iterable[FieldError]:
        """Return the errors of the rules of a schema without other errors; called for inner schemas first."""
        ...

    def total_errors(self, path: Path) -> Iterable[FieldError]:
        """Return the errors of all validated rules together, such as their total cost."""
        ...
