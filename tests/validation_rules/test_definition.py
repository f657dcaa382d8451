"""The cost limits of rules in definitions. Their other errors are in tests/registry/apiextensions."""

from __future__ import annotations

from typing import Any

from steersman.machinery.errors.field import Path
from steersman.schema import SchemaChecks, schema_errors
from steersman.validation_rules.definition import DefinitionRules

ROOT = Path("schema")


def rule_errors(schema: dict[str, Any], *, limits_each: bool = True) -> list[str]:
    rules = DefinitionRules(limits_each=limits_each)
    return [str(e) for e in schema_errors(schema, ROOT, SchemaChecks(), status_enabled=False, rules=rules)]


def lists(count: int, **members: Any) -> dict[str, Any]:
    """Return a schema of nested lists of strings, with a rule of some cost for each string."""
    schema: dict[str, Any] = {
        "type": "string",
        "maxLength": 10,
        "x-kubernetes-validations": [{"rule": "self.contains('a')"}],
    }
    for _ in range(count):
        schema = {"type": "array", "items": schema, **members}
    return {"type": "object", "properties": {"a": schema}}


def test_bounds_of_lists_multiply_what_a_rule_costs() -> None:
    assert rule_errors(lists(2, maxItems=10)) == []
    (one, *_) = rule_errors(lists(4, maxItems=100))
    assert one.startswith(
        "schema.properties[a].items.items.items.items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost "
        "exceeds budget by factor of"
    )


def test_without_bounds_the_size_of_a_request_is_one() -> None:
    assert rule_errors(lists(1)) == []


def test_what_is_stored_already_may_cost_more_alone_but_not_together() -> None:
    schema = lists(4, maxItems=60)
    alone = rule_errors(schema)
    assert len(alone) == 1
    assert rule_errors(schema, limits_each=False) == []
    more = rule_errors(lists(4, maxItems=200), limits_each=False)
    assert [error.partition(": Forbidden: ")[2][:24] for error in more] == [
        "contributed to estimated",
        "x-kubernetes-validations",
    ]


def test_rules_deep_below_each_other_are_read_once_each() -> None:
    schema: dict[str, Any] = {"type": "string", "maxLength": 5}
    for _ in range(60):
        rule = [{"rule": "has(self.a)"}]
        schema = {"type": "object", "properties": {"a": schema}, "x-kubernetes-validations": rule}
    assert rule_errors(schema) == []


def test_rules_within_what_cannot_be_seen_have_no_type() -> None:
    ruled = {"type": "object", "properties": {"b": {"type": "string"}}, "x-kubernetes-validations": [{"rule": "true"}]}
    hidden = {"x-kubernetes-preserve-unknown-fields": True, "properties": {"a": ruled}}
    schema = {"type": "object", "properties": {"h": hidden}}
    assert rule_errors(schema) == []
    around = {**schema, "x-kubernetes-validations": [{"rule": "true"}]}
    assert rule_errors(around) == [
        "schema.properties[h].properties[a].x-kubernetes-validations: Internal error: internal error: failed to "
        "construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL "
        "declarations"
    ]
