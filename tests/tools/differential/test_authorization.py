"""Tests of authorization cases: their policies are readable, and the random parts of upstream's answers are excluded."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from random import Random

from steersman.authorization.abac_file import read_policies
from tools.differential.authorization import cases, policy_file
from tools.differential.authorization.seen import bindings_aside, code_alone, defaults_aside, rules_in_order
from tools.differential.command import POLICIES, _with_policies
from tools.differential.server import Answer


def test_a_command_that_names_the_file_of_policies_gets_one() -> None:
    with ExitStack() as stack:
        assert _with_policies("serve --a", 1, stack) == "serve --a"
        command = _with_policies(f"serve --authorization-policy-file={POLICIES}", 7, stack)
        path = Path(command.partition("=")[2])
        assert path.read_text() == policy_file(7)
        assert len(read_policies(path)) == 60


def test_every_sort_of_case_comes_up() -> None:
    titles = Counter(cases(Random(number)).title for number in range(200))
    assert set(titles) == {"roles and bindings", "policies of the file", "acting as others", "what nodes see"}


def reason(text: str) -> Answer:
    return Answer(201, {"status": {"reason": text}})


def test_which_binding_gives_a_right_is_left_out() -> None:
    own = reason('RBAC: allowed by RoleBinding "b/a" of Role "r" to User "u"')
    assert bindings_aside(own) == reason("RBAC: allowed by a binding")
    assert defaults_aside(own) == own
    assert defaults_aside(reason('RBAC: allowed by ClusterRoleBinding "system:x" of')).body != own.body
    missing = ['RBAC: [role "b" not found, role "a" not found]', 'RBAC: [role "a" not found, role "b" not found]']
    assert len({str(bindings_aside(reason(each))) for each in missing}) == 1


def test_bodies_of_what_was_allowed_are_left_out() -> None:
    assert code_alone(Answer(200, {"items": []})) == Answer(200, None)
    assert code_alone(Answer(403, {"message": "no"})) == Answer(403, {"message": "no"})


def test_rules_come_in_one_order() -> None:
    answers = [
        rules_in_order(Answer(201, {"status": {"resourceRules": rules, "evaluationError": error}}))
        for rules, error in (([{"a": 1}, {"b": 2}], "x, y"), ([{"b": 2}, {"a": 1}], "y, x"))
    ]
    assert answers[0] == answers[1]
