"""Tests of the comparison of two servers: cases are reproducible by number, and differences are found and minimised."""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

import pytest

from tests import ROOT
from tools.differential import command, header_fields
from tools.differential.case import NAME, SINCE, UID, Case, Step, named
from tools.differential.command import KINDS, Comparer, main
from tools.differential.comparison import Normaliser, differences
from tools.differential.server import Answer


class FakeServer:
    """Server that answers by a function of method, path and body."""

    def __init__(self, answer: Callable[[str, str, Any], Answer]) -> None:
        self._answer = answer

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        return self._answer(method, path, body)

    def another(self) -> FakeServer:
        return self

    def placed(self, body: Any) -> Any:
        return body

    def close(self) -> None:
        """Do nothing: there is no connection."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_made_again_by_its_seed(kind: str) -> None:
    first, again = (KINDS[kind](Random("7/x/3")) for _ in range(2))
    assert list(map(str, first.steps)) == list(map(str, again.steps))
    assert list(map(str, KINDS[kind](Random("7/x/4")).steps)) != list(map(str, first.steps))


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_names_the_objects_of_its_case_and_can_be_sent(kind: str) -> None:
    for number in range(30):
        for step in KINDS[kind](Random(number)).steps:
            path = named(step.path, "case-1", "ns")
            assert "@" not in path.replace(SINCE, "1").replace(UID, "1")
            if step.body is not None:
                assert NAME not in json.dumps(named(step.body, "case-1", "ns"))


def configmap(version: int, uid: str, **data: str) -> Answer:
    metadata = {"name": "a", "resourceVersion": str(version), "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return Answer(200, {"kind": "ConfigMap", "metadata": metadata, "data": data})


UIDS = ("4a9c1d3e-0000-4000-8000-000000000001", "5b9c1d3e-0000-4000-8000-000000000002")


def test_what_is_a_servers_own_choice_is_no_difference() -> None:
    a, b = Normaliser(), Normaliser()
    for first, second in (((5, UIDS[0]), (70, UIDS[1])), ((5, UIDS[0]), (70, UIDS[1])), ((9, UIDS[0]), (99, UIDS[1]))):
        assert not list(differences(a.answer(configmap(*first)), b.answer(configmap(*second))))


def test_a_write_where_the_other_wrote_nothing_is_a_difference() -> None:
    a, b = Normaliser(), Normaliser()
    assert a.answer(configmap(5, UIDS[0])) == b.answer(configmap(7, UIDS[0]))
    [line] = differences(a.answer(configmap(5, UIDS[0])), b.answer(configmap(8, UIDS[0])))
    assert line == "body.metadata.resourceVersion: a '<version 1>', b '<version 2>'"


@pytest.mark.parametrize(
    ("a", "b", "lines"),
    [
        ({"x": 1}, {"x": 1}, []),
        ({"x": 1}, {"x": True}, ["x: a 1, b True"]),
        ({"x": 1}, {}, ["x: only a has 1"]),
        ({"x": [1]}, {"x": [1, 2]}, ["x[1]: only b has 2"]),
        ({"x": {"y": "one"}}, {"x": {"y": "ode"}}, ["x.y: a 'one', b 'ode'"]),
    ],
)
def test_every_place_that_differs_is_one_line(a: Any, b: Any, lines: list[str]) -> None:
    assert list(differences(a, b)) == lines


def test_causes_may_come_in_any_order() -> None:
    one, other = {"field": "a", "message": "m"}, {"field": "b", "message": "m"}
    status = {"kind": "Status", "message": "X is invalid: [a: m, b: m]", "details": {"causes": [one, other]}}
    turned = {"kind": "Status", "message": "X is invalid: [b: m, a: m]", "details": {"causes": [other, one]}}
    assert Normaliser().answer(Answer(422, status)) == Normaliser().answer(Answer(422, turned))


@pytest.fixture
def compare() -> Iterator[Callable[[Any, Any], Comparer]]:
    """Yield `compare(a, b)`, which compares two servers, each given by a function of method, path and body."""
    made: list[Comparer] = []

    def make(a: Any, b: Any) -> Comparer:
        made.append(Comparer(FakeServer(a), FakeServer(b)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_difference_is_shown_with_the_steps_that_lead_to_it(compare: Callable[[Any, Any], Comparer]) -> None:
    def broken(method: str, path: str, body: Any) -> Answer:
        seen.append((path.rpartition("/")[2], body))
        return Answer(500 if (path.rpartition("/")[2], "put") in seen and method == "GET" else 200, {})

    seen: list[tuple[str, Any]] = []
    path = f"/api/v1/namespaces/ns/configmaps/{NAME}"
    steps = [Step("POST", path, "post"), Step("PUT", path, "put"), Step("PATCH", path, "patch"), Step("GET", path)]
    comparer = compare(lambda *asked: Answer(200, {}), broken)
    found = comparer.play(Case("writes", steps))
    assert found is not None
    small = comparer.shrink(found)
    assert [step.method for step in small.case.steps] == ["PUT", "GET"]
    assert small.report("case 1").endswith("2. GET " + path + "\n      code: a 200, b 500")


def test_where_the_right_one_fails_nothing_is_said_of_the_other(compare: Callable[[Any, Any], Comparer]) -> None:
    comparer = compare(lambda *asked: Answer(0, ""), lambda *asked: Answer(200, {}))
    assert comparer.play(Case("a get", [Step("GET", "/")])) is None


@pytest.mark.parametrize(("wrong", "code", "told"), [(1, 0, "0 differ, 1 differed only once"), (99, 1, "1 differ, 0")])
def test_what_differs_only_once_is_told_but_does_not_count(
    compare: Callable[[Any, Any], Comparer],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wrong: int,
    code: int,
    told: str,
) -> None:
    answers = itertools.chain([Answer(500, {})] * wrong, itertools.repeat(Answer(200, {})))
    comparer = compare(lambda *asked: Answer(200, {}), lambda *asked: next(answers))
    monkeypatch.setitem(KINDS, "apply", lambda random: Case("a get", [Step("GET", "/")]))
    assert command.run_kind(comparer, "apply", argparse.Namespace(cases=1, case=None, seed=1, show=1, jobs=1)) == code
    assert told in capsys.readouterr().out


@pytest.mark.slow
def test_a_server_is_like_itself(capsys: pytest.CaptureFixture[str]) -> None:
    serve = shlex.join(
        [sys.executable, str(ROOT / "bench" / "serve"), "--allow-privileged", "--runtime-config=api/all=true"]
    )
    assert main(["--a", serve, "--b", serve, "--cases", "5", "--kinds", ",".join(KINDS)]) == 0
    assert capsys.readouterr().out.count(" requests, 0 differ,") == len(KINDS)


def test_header_fields_are_sent_and_what_follows_from_them_is_compared() -> None:
    requests = [header_fields.case(Random(number)) for number in range(300)]
    assert {each.method for each in requests} == {"GET", "POST", "PATCH"}
    assert any(len(values) > 1 for each in requests for _, values in each.fields)
    status = {"kind": "Status", "reason": "NotAcceptable", "message": "no", "metadata": {"uid": "1"}}
    answer = Answer(406, status, (), {"content-type": "application/json", "date": "now", "audit-id": "one"})
    assert header_fields.told(answer) == {
        "code": 406,
        "content-type": "application/json",
        "audit-id": "one",
        "kind": "Status",
        "reason": "NotAcceptable",
        "message": "no",
    }
