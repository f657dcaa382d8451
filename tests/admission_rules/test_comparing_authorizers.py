"""Tests of comparisons with values of the authorizer: only inequality is supported."""

from __future__ import annotations

import pytest

from steersman.admission_rules.answers import AuthorizerAnswers
from steersman.admission_rules.environments import environment
from steersman.admission_rules.evaluation import BUDGET, Activation
from steersman.admission_rules.expressions import ANYTHING, compile_admission
from tests.admission_rules.requests import Authorizer, inputs

DECISION = "authorizer.path('/a').check('get')"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("authorizer != authorizer", True),
        ("dyn(authorizer) != 1", True),
        (f"{DECISION} != {DECISION}", True),
        ("[authorizer] == [authorizer]", True),
        ("[authorizer] != [authorizer]", False),
        ("[dyn(authorizer), dyn(1)] == [dyn(authorizer), dyn(2)]", False),
        ("{'a': authorizer} == {'a': authorizer}", True),
        ("authorizer in [authorizer]", False),
        ("dyn(1) in [dyn(authorizer), dyn(1)]", True),
        ("authorizer == authorizer", "no such overload"),
        (f"{DECISION} == {DECISION}", "no such overload"),
        ("dyn(authorizer)['a'] == 1", "no such key: a"),
        ("dyn(authorizer).exists(x, true)", "got 'library.authorizerVal', expected iterable type"),
        (f"dyn({DECISION}).exists(x, true)", "got 'library.decisionVal', expected iterable type"),
    ],
)
async def test_what_comparing_them_comes_to(text: str, expected: bool | str) -> None:
    compiled = compile_admission(text, environment(params=False, authorizer=True), ANYTHING)
    answers = AuthorizerAnswers(Authorizer().ask)
    found = await answers.run(lambda: Activation(inputs(), answers, BUDGET).evaluate(compiled))
    if isinstance(expected, str):
        assert found.error == f"expression '{text}' resulted in error: {expected}"
    else:
        assert (found.value, found.error) == (expected, "")
