"""Validation of the rules of a schema that is about to be stored, and of their estimated costs.

Follows k8s.io/apiextensions-apiserver `apis/apiextensions/validation` (`validation.go`, `cel_validation.go`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from steersman.cel.names import escape
from steersman.cel.sizes import added, multiplied
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.field import FieldError, Path, Verbatim, forbidden, internal, invalid
from steersman.schema import Node, SchemaPosition
from steersman.schema.compiling import compile_node
from steersman.schema.internal_form import rule_form
from steersman.schema.nodes import EMBEDDED
from steersman.validation_rules.compiling import ROOT, CompiledRule, Rule, RuleCompiler, RuleScope
from steersman.validation_rules.declarations import Declarations, Sized
from steersman.validation_rules.evaluation import BUDGET, Rules

RULE_LIMIT: Final = 10_000_000
"""The cost limit of one expression, for all values that its node may have together."""
SCHEMA_LIMIT: Final = 100_000_000
"""The cost limit of all expressions of a schema together."""

_MANY: Final = 100.0
_FEW: Final = 1.5
_MOST_EXPENSIVE: Final = 4
_UNKNOWN_TYPE: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert "
    "structural schema to CEL declarations"
)


@dataclass(slots=True)
class _NodeFacts:
    """Facts about a schema node that the nodes below it need."""

    node: Node
    name: str
    """The name of the node's type."""
    has_rules: bool
    """True if the node or a node above it has rules."""
    sized: Sized | None
    """None if expressions cannot see the node, or there are no rules."""
    cardinality: int | None
    """The most values that the node may have in an object; None if there is no bound."""
    is_unknown: bool
    """True if the type cannot be determined although rules need it."""


@dataclass(slots=True)
class _TotalCost:
    """The sum of the costs of expressions, with the most expensive ones."""

    cost: int = 0
    expensive: list[tuple[int, Path]] = field(default_factory=list)

    def add(self, cost: int, path: Path) -> None:
        self.cost = added(self.cost, cost)
        if cost >= SCHEMA_LIMIT // 100:
            self.expensive.append((cost, path))
            self.expensive.sort(key=lambda each: -each[0])
            del self.expensive[_MOST_EXPENSIVE:]


class DefinitionRules:
    """Validates the rules of one schema (schema.RuleValidator)."""

    def __init__(self, *, limits_each: bool = True) -> None:
        """Create the validator; with `limits_each` False, as for stored rules, single expressions have no cost limit."""
        self._limits_each: Final = limits_each
        self._facts: Final[dict[int, _NodeFacts]] = {}
        self._declarations: Final = Declarations()
        self._compiler: Final = RuleCompiler(self._declarations)
        self._total: Final = _TotalCost()
        self._budget = BUDGET

    def default_errors(self, node: Node, value: Any, path: Path, *, is_root: bool) -> Iterable[FieldError]:
        """Return the errors of the rules for a default value, both with an equal old value and without an old value."""
        rules = Rules(node, is_resource=is_root)
        if rules.is_empty or self._budget < 0:
            return []
        result = rules.evaluate(value, value, path, budget=self._budget)
        errors, left = result.errors, result.budget
        if not errors:
            result = rules.evaluate(value, None, path, budget=self._budget)
            errors, left = result.errors, min(left, result.budget)
        self._budget = left
        return errors

    def rule_errors(self, place: SchemaPosition) -> Iterator[FieldError]:
        """Yield the errors of the rules of a node."""
        facts = self._facts_of(place)
        path = place.path / "x-kubernetes-validations"
        if facts.sized is None:
            yield internal(path, _UNKNOWN_TYPE)
            return
        rules = tuple(place.schema["x-kubernetes-validations"])
        for index, compiled in enumerate(self._compiler.compile(rules, RuleScope(facts.sized, facts.name))):
            yield from self._errors(compiled, facts, place, path[index])

    def total_errors(self, path: Path) -> Iterator[FieldError]:
        """Yield the errors of all rules together."""
        if self._total.cost <= SCHEMA_LIMIT:
            return
        for _, expensive in self._total.expensive:
            detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden(expensive, detail)
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield forbidden(path, _too_expensive(name, self._total.cost, SCHEMA_LIMIT))

    def _errors(
        self, compiled: CompiledRule, facts: _NodeFacts, place: SchemaPosition, path: Path
    ) -> Iterator[FieldError]:
        assert facts.sized is not None
        count = facts.sized.most_in_a_request if facts.cardinality is None else facts.cardinality
        yield from self._costs("estimated rule cost", _product(compiled.cost, count), path / "rule")
        if compiled.error is not None:
            yield invalid(path / "rule", _message_form(compiled.rule), compiled.error)
        here = path / "messageExpression"
        if compiled.message_error is not None:
            yield invalid(here, _message_form(compiled.rule), compiled.message_error)
        elif compiled.message_cost is not None:
            yield from self._costs("estimated messageExpression cost", compiled.message_cost, here)
        if compiled.uses_old_self:
            if place.uncorrelatable is not None:
                detail = (
                    f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelatable}"
                )
                yield invalid(path / "rule", compiled.rule["rule"], detail)
        elif compiled.rule.get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            yield invalid(path / "optionalOldSelf", compiled.rule["optionalOldSelf"], detail)

    def _costs(self, name: str, cost: int, path: Path) -> Iterator[FieldError]:
        if self._limits_each and cost > RULE_LIMIT:
            yield forbidden(path, _too_expensive(name, cost, RULE_LIMIT))
        self._total.add(cost, path)

    # Facts about nodes

    def _facts_of(self, place: SchemaPosition) -> _NodeFacts:
        key = id(place.schema)
        found = self._facts.get(key)
        if found is None:
            found = self._facts[key] = self._determine(place)
        return found

    def _determine(self, place: SchemaPosition) -> _NodeFacts:
        """Determine the facts about a node, after those of the nodes above: a type unknown there is unknown here."""
        above = None if place.parent is None else self._facts_of(place.parent)
        if above is None:
            node, name = place.node or compile_node(place.schema), ROOT
            cardinality: int | None = 1
        else:
            node, name = _STEPS[place.step](above, place.name)
            cardinality = _below(above)
        has_rules = bool(node.rules) or (above is not None and above.has_rules)
        facts = _NodeFacts(node, name, has_rules, None, cardinality, False)
        if has_rules:
            is_resource = above is None or bool(node.traits & EMBEDDED)
            if above is None or not above.is_unknown:
                facts.sized = self._declarations.type_of(node, name, is_resource=is_resource)
            facts.is_unknown = facts.sized is None
        return facts


def _property(above: _NodeFacts, name: str) -> tuple[Node, str]:
    return above.node.properties[name], f"{above.name}.{escape(name) or name}"


def _items(above: _NodeFacts, name: str) -> tuple[Node, str]:
    assert above.node.items is not None
    return above.node.items, f"{above.name}.@idx"


def _values(above: _NodeFacts, name: str) -> tuple[Node, str]:
    assert isinstance(above.node.additional, Node)
    return above.node.additional, f"{above.name}.@elem"


_STEPS: Final[dict[str, Callable[[_NodeFacts, str], tuple[Node, str]]]] = {
    "properties": _property,
    "items": _items,
    "additionalProperties": _values,
}


def _below(above: _NodeFacts) -> int | None:
    """Return the maximum number of values of a child node, given those of its parent."""
    most = _most_elements(above.node)
    return None if above.cardinality is None or most is None else _product(above.cardinality, most)


def _most_elements(node: Node) -> int | None:
    """Return the most items or members of a value; a named member counts once."""
    checks = node.checks
    match node.types:
        case ("object",) if node.additional is not None:
            most = None if checks is None else checks.max_properties
        case ("array",):
            most = None if checks is None else checks.max_items
        case _:
            return 1
    return None if most is None else max(most, 0)


def _product(cost: int, count: int) -> int:
    """Multiply with saturation, as Go code with an overflow guard does."""
    return 0 if not cost else multiplied(cost, count)


def _too_expensive(name: str, cost: int, limit: int) -> str:
    factor = float(cost) / float(limit)
    if factor > _MANY:
        shown = "more than 100x"
    elif factor < _FEW:
        shown = f"{factor:f}x"
    else:
        shown = f"{factor:.1f}x"
    return (
        f"{name} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties, and "
        "maxLength where arrays, maps, and strings are declared)"
    )


def _message_form(rule: Rule) -> Verbatim:
    return Verbatim(encode_in_order(rule_form(rule)).decode())
