"""Tests of the evaluation of expressions: on the event loop or in a worker thread, with cached authorizer answers."""

from __future__ import annotations

import threading

import pytest

from steersman.admission_rules.answers import AuthorizerAnswers
from steersman.admission_rules.environments import environment
from steersman.admission_rules.evaluation import BUDGET, Activation, Evaluation, Inputs
from steersman.admission_rules.expressions import ANYTHING, CompiledExpression, compile_admission
from steersman.cel.regular import compile_pattern
from tests.admission_rules.requests import Authorizer, inputs


def _compiled(text: str) -> CompiledExpression:
    return compile_admission(text, environment(params=False, authorizer=True), ANYTHING)


THREADS: list[str] = []


def _evaluate(given: Inputs, answers: AuthorizerAnswers, expression: CompiledExpression) -> Evaluation:
    THREADS.append(threading.current_thread().name)
    return Activation(given, answers, BUDGET).evaluate(expression)


async def test_what_is_cheap_stays_on_the_loop_and_what_is_not_is_begun_again() -> None:
    here = threading.current_thread().name
    answers = AuthorizerAnswers(Authorizer().ask)
    numbers = "[0,1,2,3,4,5,6,7,8,9]"
    cheap = _compiled(f"{numbers}.map(a, a)")
    dear = _compiled(f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, {numbers}.all(d, true))))")
    THREADS.clear()
    assert len((await answers.run(_evaluate, inputs(), answers, cheap)).value) == 10
    assert [here] == THREADS
    assert (await answers.run(_evaluate, inputs(), answers, dear)).value is True
    assert THREADS[1] == here
    assert THREADS[2] != here


async def test_regular_expressions_are_compiled_beside_the_loop() -> None:
    compile_pattern.cache_clear()
    answers = AuthorizerAnswers(Authorizer().ask)
    matches = _compiled("'v1.4.0'.matches(r'v1\\.[0-4]\\.\\d+') && 'a1'.find('[0-9]') == '1'")
    THREADS.clear()
    assert (await answers.run(_evaluate, inputs(), answers, matches)).value is True
    assert len(THREADS) == 2
    assert (await answers.run(_evaluate, inputs(), answers, matches)).value is True
    assert THREADS[2] == threading.current_thread().name


async def test_checks_cost_no_time_of_the_loop() -> None:
    answers = AuthorizerAnswers(Authorizer().ask)
    check = "authorizer.path('/a').check('get').allowed()"
    THREADS.clear()
    twice = _compiled(f"{check} && {check}")
    assert (await answers.run(_evaluate, inputs(), answers, twice)).value is True
    assert len(THREADS) == 1
    thrice = _compiled(f"{check} && {check} && {check}")
    failed = await answers.run(_evaluate, inputs(), answers, thrice)
    assert failed.error.endswith("operation cancelled: actual cost limit exceeded")


@pytest.mark.usefixtures("large_request")
async def test_answers_are_asked_for_on_the_loop_from_a_thread() -> None:
    authorizer = Authorizer(waits=True)
    answers = AuthorizerAnswers(authorizer.ask)
    text = "authorizer.path('/a').check('get').allowed() && authorizer.path('/a').check('get').reason() == ''"
    assert (await answers.run(_evaluate, inputs(), answers, _compiled(text))).value is True
    assert len(authorizer.asked) == 1


async def test_a_pattern_that_is_not_compiled_yet_is_compiled_beside_the_loop() -> None:
    answers = AuthorizerAnswers(Authorizer().ask)
    text = "'a-b'.findAll('[a-z]' + '{1,1}') == ['a', 'b'] && 'a'.matches('[' + 'a]')"
    THREADS.clear()
    assert (await answers.run(_evaluate, inputs(), answers, _compiled(text))).value is True
    assert len(set(THREADS)) == 2
