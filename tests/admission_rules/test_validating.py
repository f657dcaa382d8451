"""Tests of validating expressions: variables, budgets, messages and annotations."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_rules.answers import AuthorizerAnswers
from steersman.admission_rules.validating import Decision, PolicyResult, ValidatingRules
from steersman.api.admissionregistration.v1 import ValidatingAdmissionPolicySpec
from steersman.machinery.codec.serializer import from_plain
from tests.admission_rules.requests import Authorizer, inputs

CHECK = "authorizer.group('').resource('pods').check('get').allowed()"
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


async def _evaluate_rules(
    spec: dict[str, Any], obj: Any, authorizer: Authorizer | None = None, **other: Any
) -> PolicyResult:
    rules = ValidatingRules(from_plain(ValidatingAdmissionPolicySpec, spec))
    answers = AuthorizerAnswers((authorizer or Authorizer()).ask)
    return await answers.run(rules.evaluate, inputs(obj, **other), answers)


def _messages(judgement: PolicyResult) -> list[str]:
    return [each.message for each in judgement.decisions]


async def test_a_variable_is_evaluated_once_for_all_validations() -> None:
    authorizer = Authorizer()
    spec = {
        "variables": [{"name": "allowed", "expression": CHECK}, {"name": "unused", "expression": "1 / 0"}],
        "validations": [{"expression": "variables.allowed"}, {"expression": "variables.allowed && true"}],
    }
    assert [each.denies for each in (await _evaluate_rules(spec, {}, authorizer)).decisions] == [False, False]
    assert len(authorizer.asked) == 1


async def test_variables_that_fail_say_which() -> None:
    spec = {
        "variables": [{"name": "a", "expression": "object.none"}, {"name": "b", "expression": "variables.a"}],
        "validations": [{"expression": "variables.b == 1"}],
    }
    assert _messages(await _evaluate_rules(spec, {})) == [
        "expression 'variables.b == 1' resulted in error: composited variable \"b\" fails to evaluate: composited "
        'variable "a" fails to evaluate: no such key: none'
    ]


async def test_variables_that_are_wrong_fail_where_they_are_asked_for() -> None:
    spec = {
        "variables": [{"name": "a", "expression": "nothing"}],
        "validations": [{"expression": "variables.a == 1"}, {"expression": "true"}],
    }
    failed, held = (await _evaluate_rules(spec, {})).decisions
    assert failed.message.startswith(
        "expression 'variables.a == 1' resulted in error: composited variable \"a\" fails to compile: compilation "
        "failed: ERROR"
    )
    assert held == Decision(denies=False)


async def test_the_budget_is_one_for_all_validations() -> None:
    many = [{"expression": f"{CHECK} && {CHECK}"}] * 15
    judgement = await _evaluate_rules({"validations": many}, {})
    assert _messages(judgement) == [OUT_OF_BUDGET]
    assert judgement.decisions[0].error_type == "out_of_budget"
    ignored = await _evaluate_rules({"validations": many, "failurePolicy": "Ignore"}, {})
    assert [(each.denies, each.is_error) for each in ignored.decisions] == [(False, True)]


async def test_annotations_are_made_without_the_authorizer_and_with_their_own_budget() -> None:
    spec = {
        "validations": [{"expression": f"{CHECK} && {CHECK}"}] * 14,
        "auditAnnotations": [
            {"key": "a", "valueExpression": "' b '"},
            {"key": "c", "valueExpression": f"string({CHECK})"},
            {"key": "d", "valueExpression": "null"},
        ],
    }
    made = (await _evaluate_rules(spec, {})).annotations
    assert [(each.key, each.value) for each in made] == [("a", "b"), ("c", "")]
    assert made[1].error.endswith("resulted in error: no such attribute(s): authorizer")


async def test_match_conditions_may_name_variables_but_not_the_namespace() -> None:
    spec = {
        "variables": [{"name": "n", "expression": "object.n"}],
        "matchConditions": [{"name": "a", "expression": "variables.n > 1 && namespaceObject == null"}],
        "validations": [{"expression": "namespaceObject.metadata.name != 'x'"}],
    }
    namespace = {"metadata": {"name": "x"}}
    assert (await _evaluate_rules(spec, {"n": 1}, namespace=namespace)).decisions == ()
    assert [each.denies for each in (await _evaluate_rules(spec, {"n": 2}, namespace=namespace)).decisions] == [True]


async def test_what_goes_wrong_has_the_type_that_metrics_tell() -> None:
    wrong = await _evaluate_rules(
        {"validations": [{"expression": "1"}, {"expression": "false"}, {"expression": "true"}]}, {}
    )
    assert [each.error_type for each in wrong.decisions] == ["compile_error", "invalid_error", "no_error"]


def _chain(name: str, count: int, first: str, more: str) -> list[dict[str, str]]:
    """Return variables of which each uses the one before, named PREVIOUS in `more`."""
    expressions = [first, *(more.replace("PREVIOUS", f"variables.{name}{each}") for each in range(count - 1))]
    return [{"name": f"{name}{index}", "expression": each} for index, each in enumerate(expressions)]


async def test_variables_that_double_what_they_hold_are_not_gone_through() -> None:
    variables = [*_chain("v", 40, "[1]", "[PREVIOUS, PREVIOUS]"), *_chain("w", 40, "[1]", "[PREVIOUS, PREVIOUS]")]
    spec = {"variables": variables, "validations": [{"expression": "variables.v39 == variables.w39"}]}
    (message,) = _messages(await _evaluate_rules(spec, {}))
    assert message.endswith("resulted in error: operation cancelled: actual cost limit exceeded")


@pytest.mark.slow
async def test_variables_stop_where_they_have_used_up_the_budget() -> None:
    costly = "lists.range(600).all(a, lists.range(600).all(b, true))"
    spec = {
        "variables": [{"name": f"v{each}", "expression": costly} for each in range(1000)],
        "validations": [{"expression": " && ".join(f"variables.v{each}" for each in range(1000))}],
    }
    assert _messages(await _evaluate_rules(spec, {})) == [OUT_OF_BUDGET]  # after some thirty of them


@pytest.mark.parametrize("more", ["[PREVIOUS]", "dyn([PREVIOUS])"])
async def test_variables_may_need_each_other_only_so_deep(more: str) -> None:
    spec = {"variables": _chain("v", 1000, "[1]", more), "validations": [{"expression": "size(variables.v999) == 1"}]}
    (message,) = _messages(await _evaluate_rules(spec, {}))
    assert "is needed by too many others at once" in message
    spec["validations"] = [{"expression": "size(variables.v150) == 1"}]
    assert _messages(await _evaluate_rules(spec, {})) == [""]
