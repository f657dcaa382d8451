"""Where rules (`x-kubernetes-validations`) are judged, by those who know expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from steersman.machinery.errors.field import FieldError, Path

from .nodes import Node


class RulePlace(NamedTuple):
    """A schema in the schema of a version, on a way that leads through no allOf, anyOf, oneOf or not.

    `parent` and `step` say how it is reached: "properties", "items" or "additionalProperties", and the name of the
    property. `uncorrelatable` is the outermost schema on the way whose values cannot be told from update to update.
    """

    schema: Mapping[str, Any]
    path: Path
    parent: RulePlace | None
    step: str
    name: str
    uncorrelatable: Path | None
    node: Node | None = None
    """The schema compiled, if it is already."""


class RuleJudge(Protocol):
    """Judges the rules of one schema, and what else of it is said in expressions."""

    def of_default(self, node: Node, value: Any, path: Path, *, is_root: bool) -> Iterable[FieldError]:
        """What the rules of a schema, and of those in it, have against its default."""
        ...

    def declared(self, place: RulePlace) -> Iterable[FieldError]:
        """What is wrong with the rules of a schema in which nothing else is wrong; called from the inside out."""
        ...

    def total(self, path: Path) -> Iterable[FieldError]:
        """What is wrong with all rules that were judged, together."""
        ...
