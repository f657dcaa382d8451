"""Tests of match conditions: results, and validation errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from steersman.admission_rules.answers import AuthorizerAnswers
from steersman.admission_rules.match_conditions import Match, MatchConditions, match_condition_errors
from steersman.machinery.errors.field import Path
from tests.admission_rules.requests import Authorizer, inputs


@dataclass
class _Condition:
    name: str
    expression: str


def _conditions(*expressions: str, failure_policy: str | None = "Fail", has_params: bool = False) -> MatchConditions:
    conditions = [_Condition(f"c{index}", text) for index, text in enumerate(expressions)]
    return MatchConditions(conditions, failure_policy=failure_policy, has_params=has_params)


async def _match(conditions: MatchConditions, obj: Any = None, authorizer: Authorizer | None = None) -> Match:
    return await conditions.match(inputs(obj), AuthorizerAnswers((authorizer or Authorizer()).ask))


@pytest.mark.parametrize(
    "expression",
    [
        "object.metadata.name == 'settings'",
        "oldObject == null",
        "request.operation == 'CREATE' && request.namespace == 'default'",
        "request.userInfo.groups.exists(g, g == 'dev')",
        "request.options.kind == 'CreateOptions'",
        "!has(request.subResource)",
        "authorizer.group('').resource('pods').namespace('default').check('get').allowed()",
        "!authorizer.requestResource.check('delete').allowed()",
        "authorizer.path('/healthz').check('post').reason() == 'no rule'",
        "authorizer.serviceAccount('default', 'robot').group('').resource('pods').check('get').allowed()",
        "namespaceObject == null",
    ],
)
async def test_conditions_see_the_objects_the_request_and_the_authorizer(expression: str) -> None:
    found = await _match(_conditions(expression), {"metadata": {"name": "settings"}})
    assert found == Match(matches=True)


async def test_checks_say_what_is_asked_and_about_whom() -> None:
    authorizer = Authorizer()
    await _match(
        _conditions(
            "authorizer.requestResource.subresource('status').check('get').allowed()",
            "authorizer.serviceAccount('n', 'r').group('g').resource('r').labelSelector('a=b').check('get').allowed()",
        ),
        authorizer=authorizer,
    )
    first, second = authorizer.asked
    assert (first.service_account, first.resource, first.subresource, first.namespace, first.name) == (
        None,
        "configmaps",
        "status",
        "default",
        "settings",
    )
    assert (second.service_account, second.group, second.label_selector) == (("n", "r"), "g", "a=b")


async def test_an_unmet_condition_counts_more_than_one_that_fails() -> None:
    found = await _match(_conditions("object.missing", "true"), {})
    assert found.error == "compilation error: must evaluate to bool but got dyn"
    found = await _match(_conditions("object.missing == 1", "false"), {})
    assert found == Match(matches=False, unmet="c1", failures=1)


async def test_failures_refuse_or_are_ignored_by_the_policy() -> None:
    text = "expression 'object.a == 1' resulted in error: no such key: a"
    assert (await _match(_conditions("object.a == 1"), {})).error == text
    both = await _match(_conditions("object.a == 1", "object.b == 1", "object.a == 1"), {})
    assert both.error == f"[{text}, {text.replace('.a', '.b').replace('key: a', 'key: b')}]"
    ignored = await _match(_conditions("object.a == 1", failure_policy="Ignore"), {})
    assert ignored == Match(matches=False, failures=1)


async def test_conditions_have_a_budget() -> None:
    check = "authorizer.group('').resource('pods').check('get').allowed()"
    found = await _match(_conditions(*[f"{check} && {check}"] * 4))
    assert found.error == (
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )
    assert (await _match(_conditions(f"{check} && {check} && {check}"))).error == (
        f"expression '{check} && {check} && {check}' resulted in error: operation cancelled: actual cost limit exceeded"
    )


async def test_answers_that_have_to_wait_are_waited_for_and_asked_for_once() -> None:
    authorizer = Authorizer(waits=True)
    text = "authorizer.path('/a').check('get').allowed() && !authorizer.path('/b').check('post').allowed()"
    assert (await _match(_conditions(text, text), authorizer=authorizer)).matches
    assert [check.path for check in authorizer.asked] == ["/a", "/b"]


@pytest.mark.usefixtures("large_request")
async def test_large_objects_are_judged_beside_the_loop() -> None:
    authorizer = Authorizer()
    conditions = _conditions("object.a == 1 && authorizer.path('/a').check('get').allowed()")
    assert (await conditions.match(inputs({"a": 1}), AuthorizerAnswers(authorizer.ask))).matches
    assert len(authorizer.asked) == 1


async def test_times_of_the_namespace_come_as_texts() -> None:
    conditions = _conditions("namespaceObject.metadata.creationTimestamp.getFullYear() > 2000")
    given = inputs({}, namespace={"metadata": {"creationTimestamp": "2024-01-01T00:00:00Z"}})
    match = await conditions.match(given, AuthorizerAnswers(Authorizer().ask))
    assert match.error.endswith("resulted in error: no such overload: getFullYear(string)")


@pytest.mark.parametrize(
    ("name", "expression", "errors"),
    [
        ("a", "true", []),
        ("", " ", ["m[0].expression: Required value", "m[0].name: Required value"]),
        ("a", "1", ['m[0].expression: Invalid value: "1": must evaluate to bool but got int']),
        (
            "a",
            " nothing ",
            [
                'm[0].expression: Invalid value: "nothing": compilation failed: ERROR: <input>:1:1: undeclared '
                "reference to 'nothing' (in container '')\n | nothing\n | ^"
            ],
        ),
        (
            "a",
            "params == null",
            [
                'm[0].expression: Invalid value: "params == null": compilation failed: ERROR: <input>:1:1: undeclared '
                "reference to 'params' (in container '')\n | params == null\n | ^"
            ],
        ),
        (
            "a",
            "request.uid == ''",
            [
                "m[0].expression: Invalid value: \"request.uid == ''\": compilation failed: ERROR: <input>:1:8: "
                "undefined field 'uid'\n | request.uid == ''\n | .......^"
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_condition_is_told(name: str, expression: str, errors: list[str]) -> None:
    found = match_condition_errors([_Condition(name, expression)], Path("m"))
    assert [str(error) for error in found] == errors


def test_names_are_qualified_and_different_and_not_too_many() -> None:
    bad, *_ = match_condition_errors([_Condition("!", "true")], Path("m"))
    assert str(bad).startswith('m[0].name: Invalid value: "!": name part must consist of')
    (double,) = match_condition_errors([_Condition("a", "true")] * 2, Path("m"))
    assert str(double) == 'm[1].name: Duplicate value: "a"'
    many = list(match_condition_errors([_Condition(f"a{n}", "true") for n in range(65)], Path("m")))
    assert [str(error) for error in many] == ["m: Too many: 65: must have at most 64 items"]


def test_conditions_of_policies_may_name_the_parameters() -> None:
    condition = _Condition("a", "params.data.x == 'y'")
    assert list(match_condition_errors([condition], Path("m"), has_params=True)) == []
