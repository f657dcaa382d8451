"""Judges of objects: the server's own validation, without a server."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol

from steersman.apiextensions.declared import DeclaredVersion
from steersman.apiextensions.scale import scale_errors
from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.schema import CoercionError, Structural, blocks_rules
from steersman.validation_rules.evaluation import Rules

_BUDGET = 2_000_000


class Judge(Protocol):
    """Validates whole objects."""

    def errors(self, obj: dict[str, Any]) -> list[FieldError]:
        """Return the errors of a new object, which stays as it is."""
        ...


class CustomJudge:
    """The validation of the objects of one version of a definition."""

    def __init__(self, structural: Structural, declared: DeclaredVersion | None = None) -> None:
        """`declared` has the paths of the version's scale."""
        self._structural = structural
        self._declared = declared
        self._rules = Rules(structural.root)

    def errors(self, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
        """Return the errors of a new object, or of one that replaces `old`."""
        structural = self._structural
        obj = deepcopy(obj)
        try:
            structural.fit(obj)
        except CoercionError as error:
            return [error.error]
        structural.default(obj)
        if old is not None:
            old = deepcopy(old)
            structural.default(old)
        found = structural.validate(obj)
        if self._declared is not None:
            found += scale_errors(self._declared, obj)
        found += structural.validate_embedded(obj)
        found += structural.validate_lists(obj)
        if not structural.has_rules or blocks_rules(found) is not None:
            return found
        evaluation = self._rules.evaluate(obj, old, budget=_BUDGET)
        if evaluation.budget < 0 and not evaluation.errors:
            found.append(invalid(Path(), None, "the rules cost too much"))
        return found + evaluation.errors


class ChangeJudge:
    """The validation of objects that replace another one, which transition rules compare them with."""

    def __init__(self, judge: CustomJudge, old: dict[str, Any]) -> None:
        self._judge = judge
        self._old = old

    def errors(self, obj: dict[str, Any]) -> list[FieldError]:
        """Return the errors of an object that replaces the old one."""
        return self._judge.errors(obj, self._old)
