"""Evaluation of the rules of a schema for objects, within a cost budget (apiserver `schema/cel/validation.go`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from steersman.cel.evaluator import Program
from steersman.cel.names import escape
from steersman.cel.values import NONE, CostLimitExceeded, EvaluationError, Optional
from steersman.machinery.errors.field import (
    OMITTED,
    FieldError,
    Path,
    duplicate,
    forbidden,
    go_json,
    invalid,
    required,
)
from steersman.machinery.go.strings import trim_space
from steersman.machinery.validation.formats import byte_length
from steersman.schema import Correlated, FieldPathError, Node, valid_field_path
from steersman.schema.nodes import EMBEDDED, INT_OR_STRING, RULES_BELOW
from steersman.validation_rules.compiling import OLD_SELF, ROOT, SELF, CompiledRule, Rule, RuleCompiler, RuleScope
from steersman.validation_rules.declarations import Declarations
from steersman.validation_rules.values import value_of
from steersman.work.freeing import free_in_thread
from steersman.work.threads import give_way

BUDGET: Final = 10_000_000
"""The cost limit of all rules for one object."""
CALL_LIMIT: Final = 1_000_000
"""The cost limit of one evaluation."""
MAX_MESSAGE: Final = 5 << 10
"""Bytes of a message from an expression."""

_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_WITHOUT_VALUE: Final = frozenset({"array", "object"})


@dataclass(slots=True)
class Evaluation:
    """The result of evaluating the rules for an object."""

    budget: int
    """The remaining budget; below 0 if rules were not evaluated because it ran out."""
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """Violations that existed before the update."""


@dataclass(frozen=True, slots=True)
class _Ratchet:
    """The correlation of a value with its old value, or of the nearest correlatable value around it."""

    here: Correlated | None
    around: Correlated | None

    def is_same(self) -> bool:
        """Return True if the value, or the nearest correlatable value around it, is unchanged."""
        nearest = self.around if self.here is None else self.here
        return nearest is not None and nearest.is_same()

    def key(self, name: str) -> _Ratchet:
        if self.here is None:
            return self
        if self.around is None and name in ("apiVersion", "kind"):
            return _Ratchet(None, None)
        return _Ratchet(self.here.key(name), self.here)

    def index(self, number: int) -> _Ratchet:
        return self if self.here is None else _Ratchet(self.here.index(number), self.here)


class _OutOfBudget(Exception):
    """Raised to end the evaluation."""


class Rules:
    """The rules of a schema and of all its nodes, each compiled on first use."""

    def __init__(self, root: Node, *, is_resource: bool = True) -> None:
        self._root: Final = root
        self._is_resource: Final = is_resource
        self._declarations = Declarations()
        self._visibility_cache: Final[dict[tuple[int, str], bool]] = {}
        self._compiled: Final[dict[tuple[int, str], list[CompiledRule]]] = {}

    def __del__(self) -> None:
        free_in_thread(self._compiled, self._declarations, self._root)

    @property
    def is_empty(self) -> bool:
        """True if the schema has no rules."""
        return not self._root.traits & RULES_BELOW

    def evaluate(
        self,
        new: Any,
        old: Any = None,
        path: Path = Path(),  # noqa: B008 - a Path is never changed
        *,
        budget: int | None = None,
        correlated: Correlated | None = None,
    ) -> Evaluation:
        """Evaluate the rules for `new`, which replaces `old` (None for a new value), within a budget (default BUDGET).

        With `correlated`, as in an update, violations in unchanged parts become warnings.
        """
        evaluation = Evaluation(BUDGET if budget is None else budget)
        if self.is_empty:
            return evaluation
        evaluator = _Evaluator(self, evaluation)
        try:
            evaluator.visit(self._root, new, old, path, _Ratchet(correlated, None), ROOT, is_resource=self._is_resource)
        except _OutOfBudget:
            evaluation.budget = -1
        return evaluation

    def compiled_for(self, node: Node, name: str, *, is_resource: bool) -> list[CompiledRule]:
        """Return the compiled rules of a node."""
        key = (id(node), name)
        found = self._compiled.get(key)
        if found is None:
            sized = self._declarations.type_of(node, name, is_resource=is_resource)
            assert sized is not None
            found = self._compiled[key] = list(
                RuleCompiler(self._declarations).compile(node.rules, RuleScope(sized, name))
            )
        return found

    def compile(self) -> None:
        """Compile all rules, which may take some milliseconds each, so that evaluation compiles nothing.

        Then drop the compile-time types, which take more memory than the compiled rules.
        """
        waiting: list[tuple[Node, str, bool]] = [(self._root, ROOT, self._is_resource)]
        while waiting:
            node, name, is_resource = waiting.pop()
            if not node.traits & RULES_BELOW:
                continue
            if node.rules:
                self.compiled_for(node, name, is_resource=is_resource)
            for below, its_name in _children_with_rules(node, name):
                if self.is_visible(below, its_name):
                    waiting.append((below, its_name, bool(below.traits & EMBEDDED)))
        free_in_thread(self._declarations)
        self._declarations = Declarations()

    def is_visible(self, node: Node, name: str) -> bool:
        """Return True if expressions can see values of a node."""
        key = (id(node), name)
        found = self._visibility_cache.get(key)
        if found is None:
            sized = self._declarations.type_of(node, name, is_resource=bool(node.traits & EMBEDDED))
            found = self._visibility_cache[key] = sized is not None
        return found


def _children_with_rules(node: Node, name: str) -> Iterator[tuple[Node, str]]:
    """Yield the child nodes that may have rules, with the names of their types."""
    if node.items is not None:
        yield node.items, f"{name}.@idx"
    if isinstance(node.additional, Node):
        yield node.additional, f"{name}.@elem"
    for key, member in node.properties.items():
        if member.traits & RULES_BELOW:
            yield member, f"{name}.{escape(key) or key}"


class _Evaluator:
    """One evaluation of all rules for a value."""

    def __init__(self, rules: Rules, evaluation: Evaluation) -> None:
        self._rules: Final = rules
        self._evaluation: Final = evaluation

    def visit(
        self, node: Node, new: Any, old: Any, path: Path, ratchet: _Ratchet, name: str, *, is_resource: bool
    ) -> None:
        """Evaluate the rules for a value and everything in it; `name` is that of its type. Raises _OutOfBudget."""
        if new is None:
            return
        give_way()
        if node.rules:
            self._evaluate_node(node, new, old, path, ratchet, name, is_resource=is_resource)
        if not node.traits & RULES_BELOW:
            return
        if isinstance(new, list):
            self._items(node, new, old if isinstance(old, list) else None, path, ratchet, name)
        elif isinstance(new, dict):
            self._members(node, new, old if isinstance(old, dict) else {}, path, ratchet, name)

    def _members(
        self, node: Node, new: dict[str, Any], old: dict[str, Any], path: Path, ratchet: _Ratchet, name: str
    ) -> None:
        values = node.additional
        if isinstance(values, Node) and values.traits & RULES_BELOW:
            is_resource = bool(values.traits & EMBEDDED)
            below = f"{name}.@elem"
            for key, item in new.items():
                self.visit(values, item, old.get(key), path[key], ratchet.key(key), below, is_resource=is_resource)
        ruled = node.ruled
        if not ruled:
            return
        for key, item in new.items():
            if key not in ruled:
                continue
            member = node.properties[key]
            below = f"{name}.{escape(key) or key}"
            if self._rules.is_visible(member, below):
                is_resource = bool(member.traits & EMBEDDED)
                self.visit(member, item, old.get(key), path / key, ratchet.key(key), below, is_resource=is_resource)

    def _items(
        self, node: Node, new: list[Any], old: list[Any] | None, path: Path, ratchet: _Ratchet, name: str
    ) -> None:
        below = node.items
        if below is None or not below.traits & RULES_BELOW:
            return
        before = Correlated(new, old, node) if old is not None and node.list_type == "map" else None
        is_resource = bool(below.traits & EMBEDDED)
        for index, item in enumerate(new):
            was = None if before is None else before.index(index)
            self.visit(
                below,
                item,
                None if was is None else was.old,
                path[index],
                ratchet.index(index),
                f"{name}.@idx",
                is_resource=is_resource,
            )

    def _evaluate_node(
        self, node: Node, new: Any, old: Any, path: Path, ratchet: _Ratchet, name: str, *, is_resource: bool
    ) -> None:
        """Evaluate the rules of a node itself."""
        kind = "" if node.traits & INT_OR_STRING or not node.types else node.types[0]
        evaluation = self._evaluation
        if evaluation.budget <= 0:
            evaluation.errors.append(invalid(path, kind, _SPENT))
            raise _OutOfBudget
        variables = {SELF: _cel_value(new, node, is_resource=is_resource)}
        if old is not None:
            variables[OLD_SELF] = _cel_value(old, node, is_resource=is_resource)
        for compiled in self._rules.compiled_for(node, name, is_resource=is_resource):
            if compiled.error is not None:
                evaluation.errors.append(invalid(path, kind, f"rule compile error: {compiled.error}"))
                continue
            if compiled.program is None:
                continue
            bindings = variables
            if compiled.uses_old_self and compiled.optional_old_self:
                bindings = {**variables, OLD_SELF: Optional(variables[OLD_SELF]) if old is not None else NONE}
            elif compiled.uses_old_self and old is None:
                continue
            if self._is_satisfied(compiled, compiled.program, bindings, path, kind):
                continue
            error = self._violation(compiled, variables, new, path, node, kind)
            if not compiled.uses_old_self and ratchet.is_same():
                evaluation.warnings.append(str(error))
            else:
                evaluation.errors.append(error)
            if evaluation.budget < 0:
                raise _OutOfBudget

    def _is_satisfied(
        self, compiled: CompiledRule, program: Program, variables: Mapping[str, Any], path: Path, kind: str
    ) -> bool:
        """Evaluate a rule; an evaluation error is recorded, and the rule then counts as satisfied."""
        evaluation, rule = self._evaluation, compiled.rule
        value, cost = program.outcome(variables, min(CALL_LIMIT, evaluation.budget + 1))
        if cost > evaluation.budget:
            evaluation.errors.append(invalid(path, kind, _SPENT))
            raise _OutOfBudget
        evaluation.budget -= cost
        if isinstance(value, CostLimitExceeded):
            detail = f"'{value}': no further validation rules will be run due to call cost exceeds limit for rule: "
            evaluation.errors.append(invalid(path, kind, detail + _rule_text(rule)))
            raise _OutOfBudget
        if isinstance(value, EvaluationError):
            detail = f"{value} evaluating rule: {_rule_text(rule)}"
            if str(value).startswith("no such overload"):
                detail = (
                    f"'{value}': call arguments did not match a supported operator, function or macro signature for "
                    f"rule: {_rule_text(rule)}"
                )
            evaluation.errors.append(invalid(path, kind, detail))
            return True
        return value is True

    def _violation(
        self, compiled: CompiledRule, variables: Mapping[str, Any], new: Any, path: Path, node: Node, kind: str
    ) -> FieldError:
        """Return the error for a value that violates a rule."""
        rule = compiled.rule
        path = _path_of(rule, path, node)
        message: str | None = None
        if compiled.message_program is not None:
            message, failure = self._message(compiled.message_program, rule, variables)
            if failure is not None:
                self._evaluation.budget = -1
                return invalid(path, kind, failure)
        if message is None:
            message = trim_space(rule["message"]) if rule.get("message") else f"failed rule: {_rule_text(rule)}"
        value = OMITTED if kind in _WITHOUT_VALUE else new
        match rule.get("reason"):
            case "FieldValueForbidden":
                return forbidden(path, message)
            case "FieldValueRequired":
                return required(path, message)
            case "FieldValueDuplicate":
                return duplicate(path, value)
        return invalid(path, value, message)

    def _message(self, program: Program, rule: Rule, variables: Mapping[str, Any]) -> tuple[str | None, str | None]:
        """Return the message of a message expression, None if it is not usable; or an error text that ends the
        evaluation.
        """
        evaluation = self._evaluation
        value, cost = program.outcome(variables, min(CALL_LIMIT, evaluation.budget + 1))
        if cost > evaluation.budget:
            return None, (
                "messageExpression evaluation failed due to running out of cost budget, no further validation rules "
                "will be run"
            )
        if isinstance(value, CostLimitExceeded):
            shown = go_json(rule["messageExpression"])
            return None, (
                f"no further validation rules will be run due to call cost exceeds limit for messageExpression: {shown}"
            )
        evaluation.budget -= cost
        if not isinstance(value, str):
            return None, None
        text = trim_space(value)
        is_usable = text and "\n" not in text and byte_length(text) <= MAX_MESSAGE
        return (text if is_usable else None), None


def _cel_value(raw: Any, node: Node, *, is_resource: bool) -> Any:
    """Return a value as expressions see it, or the error in its place."""
    try:
        return value_of(raw, node, is_resource=is_resource)
    except EvaluationError as error:
        return error


def _rule_text(rule: Rule) -> str:
    """Return the description of a rule in messages."""
    return trim_space(rule.get("message") or rule["rule"])


def _path_of(rule: Rule, path: Path, node: Node) -> Path:
    """Return the path at which a violation is reported."""
    if not rule.get("fieldPath"):
        return path
    try:
        found = valid_field_path(rule["fieldPath"], _PlainView(node))
    except FieldPathError:
        return path
    return path / str(found.path)


class _PlainView(Mapping[str, Any]):
    """A view of a compiled schema as a plain schema, with the members that field paths need."""

    def __init__(self, node: Node) -> None:
        self._node: Final = node

    def __getitem__(self, key: str) -> Any:
        if key == "properties":
            return {name: _PlainView(child) for name, child in self._node.properties.items()}
        if key == "additionalProperties" and self._node.additional is not None:
            below = self._node.additional
            return _PlainView(below) if isinstance(below, Node) else below
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(("properties", "additionalProperties"))

    def __len__(self) -> int:
        return 2
