"""Match conditions of authorization webhooks."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from steersman.api.authorization.v1 import (
    LabelSelectorAttributes,
    NonResourceAttributes,
    ResourceAttributes,
    SubjectAccessReviewSpec,
)
from steersman.api.meta.v1 import LabelSelectorRequirement
from steersman.authorization.match_conditions import Match, MatchConditions

MINE = LabelSelectorAttributes(requirements=[LabelSelectorRequirement(key="mine", operator="Exists")])
LIST = SubjectAccessReviewSpec(
    user="alice",
    groups=["dev", "ops"],
    extra={"scope": ["a"]},
    resource_attributes=ResourceAttributes(verb="list", resource="pods", namespace="x", label_selector=MINE),
)
PATH = SubjectAccessReviewSpec(user="bob", non_resource_attributes=NonResourceAttributes(path="/metrics", verb="get"))


async def matched(*expressions: str, spec: SubjectAccessReviewSpec = LIST) -> Match:
    return await MatchConditions(expressions).match(spec)


@pytest.mark.parametrize(
    ("expression", "of_list", "of_path"),
    [
        ("request.user == 'alice'", True, False),
        ("'ops' in request.groups", True, False),
        ("has(request.resourceAttributes)", True, False),
        ("has(request.nonResourceAttributes) && request.nonResourceAttributes.path == '/metrics'", False, True),
        ("has(request.resourceAttributes) && request.resourceAttributes.name == ''", True, False),
        ("has(request.resourceAttributes) && has(request.resourceAttributes.fieldSelector)", False, False),
        ("request.?resourceAttributes.labelSelector.requirements.orValue([]).exists(r, r.key == 'mine')", True, False),
        ("request.extra.exists(key, key == 'scope')", True, False),
        ("request.uid == ''", True, True),
    ],
)
async def test_what_conditions_see(expression: str, of_list: bool, of_path: bool) -> None:
    assert await matched(expression) == Match(of_list)
    assert await matched(expression, spec=PATH) == Match(of_path)


async def test_all_must_hold() -> None:
    assert await matched("true", "request.user == 'alice'") == Match(matches=True)
    assert await matched("true", "false") == Match(matches=False)


async def test_one_that_has_no_value_does_not_count_where_another_does_not_hold() -> None:
    fails = "request.nonResourceAttributes.path == '/'"
    text = f"cel evaluation error: expression '{fails}' resulted in error: no such key: nonResourceAttributes"
    assert await matched(fails, "true") == Match(matches=False, error=text, has_failed=True)
    assert await matched(fails, "false") == Match(matches=False, has_failed=True)
    assert await matched("false", fails) == Match(matches=False)


async def test_what_takes_long_is_done_beside_the_loop() -> None:
    dear = "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a + b + c > 0)))"
    conditions, threads = MatchConditions([f"{dear} && {dear} && {dear}"]), []
    judge = conditions._evaluate

    class Watched(MatchConditions):
        def _evaluate(self, variables: Any) -> Any:
            threads.append(threading.current_thread() is threading.main_thread())
            return judge(variables)

    watched = Watched(["true"])
    assert await watched.match(LIST) == Match(matches=True)
    assert threads == [True, False]


async def test_what_costs_too_much_has_no_value() -> None:
    dear = "[1,2,3,4,5,6,7,8,9].all(x, true)"
    for _ in range(5):
        dear = f"[1,2,3,4,5,6,7,8,9,10,11,12].all(x, {dear})"
    found = await matched(dear)
    assert found.has_failed
    assert "cost limit exceeded" in found.error
