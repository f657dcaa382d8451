"""Match conditions of authorization webhooks: CEL expressions over a SubjectAccessReview.

A webhook is only asked if all its conditions are true. Follows k8s.io/apiserver `authorization/cel`. Slow to import,
since the expression compiler is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from steersman.api.authorization.v1 import (
    FieldSelectorAttributes,
    LabelSelectorAttributes,
    ResourceAttributes,
    SubjectAccessReviewSpec,
)
from steersman.authentication.aggregate import aggregate
from steersman.cel import declared, types
from steersman.cel.declared import DeclaredType, declared_list, declared_map, declared_object
from steersman.cel.environment import Environment
from steersman.cel.errors import CompileError
from steersman.cel.evaluator import Program
from steersman.cel.expression import compile_expression
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.kubernetes_costs import kubernetes_costs
from steersman.cel.steps import ProgramError
from steersman.cel.values import CostLimitExceeded, EvaluationError
from steersman.machinery.errors.field import FieldError, Path, duplicate, internal, invalid, required, too_many
from steersman.machinery.go.strings import trim_space
from steersman.work.offloading import can_move_to_thread, ensure_offloaded, offload

MOST: Final = 64
"""Limit of conditions per webhook."""
_LIMIT: Final = 1_000_000
"""Cost limit of one condition."""
_ALLOWANCE: Final = 5_000
"""Cost limit of one condition on the event loop, about some milliseconds."""

_UNLIMITED: Final = -1
_TEXTS: Final = declared_list(declared.STRING, _UNLIMITED)
_REQUEST: Final = "request"


def _of_texts(name: str, *fields: str, **others: DeclaredType) -> DeclaredType:
    return declared_object(f"kubernetes.{name}", {**dict.fromkeys(fields, declared.STRING), **others})


_REQUIREMENTS: Final = declared_list(_of_texts("SelectorRequirement", "key", "operator", values=_TEXTS), _UNLIMITED)
_SPEC: Final = _of_texts(
    "SubjectAccessReviewSpec",
    "user",
    "uid",
    groups=_TEXTS,
    extra=declared_map(declared.STRING, _TEXTS, _UNLIMITED),
    resourceAttributes=_of_texts(
        "ResourceAttributes",
        "namespace",
        "verb",
        "group",
        "version",
        "resource",
        "subresource",
        "name",
        fieldSelector=_of_texts("FieldSelectorAttributes", "rawSelector", requirements=_REQUIREMENTS),
        labelSelector=_of_texts("LabelSelectorAttributes", "rawSelector", requirements=_REQUIREMENTS),
    ),
    nonResourceAttributes=_of_texts("NonResourceAttributes", "path", "verb"),
)


@cache
def _environment() -> Environment:
    return base_environment().about({_REQUEST: _SPEC.type}, {each.type.name: each for each in _SPEC.objects()})


@dataclass(frozen=True, slots=True)
class Match:
    """Result of evaluating match conditions.

    `matches` is True if all are true. A non-empty `error` means that the result is unknown. `has_failed` is True if a
    condition could not be evaluated, even if another condition is false and so decides the result.
    """

    matches: bool
    error: str = ""
    has_failed: bool = False


_MATCHES: Final = Match(matches=True)


@dataclass(frozen=True, slots=True)
class _Compiled:
    text: str
    program: Program | None = None
    error: str = ""
    is_internal: bool = False


class MatchConditions:
    """The match conditions of one webhook; they must be valid (`match_condition_errors`)."""

    def __init__(self, expressions: Sequence[str]) -> None:
        self._conditions: Final = tuple(_compiled(each) for each in expressions)

    async def match(self, spec: SubjectAccessReviewSpec) -> Match:
        """Evaluate the conditions for a review's spec, in a worker thread if they are costly."""
        return await offload(self._evaluate, {_REQUEST: _plain(spec)})

    def _evaluate(self, variables: Mapping[str, Any]) -> Match:
        limit = _ALLOWANCE if can_move_to_thread() else _LIMIT
        errors: list[str] = []
        for condition in self._conditions:
            assert condition.program is not None
            value, _ = condition.program.outcome(variables, limit)
            if isinstance(value, CostLimitExceeded) and limit < _LIMIT:
                ensure_offloaded()
            if isinstance(value, EvaluationError | CostLimitExceeded):
                errors.append(f"cel evaluation error: expression '{condition.text}' resulted in error: {value}")
            elif value is False:
                return Match(matches=False, has_failed=bool(errors))
        return Match(matches=False, error=aggregate(errors), has_failed=True) if errors else _MATCHES


def match_condition_errors(expressions: Sequence[str], path: Path) -> Iterator[FieldError]:
    """Yield the errors of conditions; `path` is the path of `matchConditions`."""
    if len(expressions) > MOST:
        yield too_many(path, len(expressions), MOST)
        return
    seen: set[str] = set()
    for index, expression in enumerate(expressions):
        here = path[index] / "expression"
        if not trim_space(expression):
            yield required(here)
            continue
        if expression in seen:
            yield duplicate(here, expression)
            continue
        seen.add(expression)
        compiled = _compiled(expression)
        if compiled.error:
            if compiled.is_internal:
                yield internal(here, compiled.error)
            else:
                yield invalid(here, expression, compiled.error)


def _compiled(text: str) -> _Compiled:
    try:
        expression = compile_expression(text, _environment())
    except CompileError as error:
        return _Compiled(text, error=f"compilation failed: {error}")
    if expression.type is not types.BOOL:
        return _Compiled(text, error=f"must evaluate to bool but got {expression.type.text()}")
    try:
        return _Compiled(text, expression.program(kubernetes_costs))
    except ProgramError as error:
        return _Compiled(text, error=f"program instantiation failed: {error}", is_internal=True)


def _plain(spec: SubjectAccessReviewSpec) -> dict[str, Any]:
    """Return a spec as a JSON value for expressions; empty strings are included."""
    plain: dict[str, Any] = {"user": spec.user, "uid": spec.uid, "groups": spec.groups, "extra": spec.extra}
    if (resource := spec.resource_attributes) is not None:
        plain["resourceAttributes"] = _plain_resource(resource)
    if (other := spec.non_resource_attributes) is not None:
        plain["nonResourceAttributes"] = {"path": other.path, "verb": other.verb}
    return plain


def _plain_resource(resource: ResourceAttributes) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "namespace": resource.namespace,
        "verb": resource.verb,
        "group": resource.group,
        "version": resource.version,
        "resource": resource.resource,
        "subresource": resource.subresource,
        "name": resource.name,
    }
    if resource.field_selector is not None:
        plain["fieldSelector"] = _plain_selector(resource.field_selector)
    if resource.label_selector is not None:
        plain["labelSelector"] = _plain_selector(resource.label_selector)
    return plain


def _plain_selector(selector: FieldSelectorAttributes | LabelSelectorAttributes) -> dict[str, Any]:
    return {
        "requirements": [
            {"key": each.key, "operator": each.operator, "values": each.values} for each in selector.requirements
        ]
    }
