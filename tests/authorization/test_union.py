"""Chains of authorizers, the simple authorizers, and texts of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.rbac.v1 import PolicyRule
from steersman.authentication.user import UserInfo
from steersman.authorization.always_allow import AlwaysAllowAuthorizer
from steersman.authorization.always_deny import AlwaysDenyAuthorizer
from steersman.authorization.attributes import Attributes
from steersman.authorization.forbidden import forbidden_error, internal_error_text
from steersman.authorization.interface import Decision, ResolvedRules, Verdict, decide
from steersman.authorization.system_masters import PrivilegedGroupAuthorizer
from steersman.authorization.union import UnionAuthorizer, UnionRuleResolver
from steersman.machinery.identity.action import Action

BOB = UserInfo("bob")
QUESTION = Attributes(BOB, Action("get", namespace="n", resource="pods"))
ALLOW, DENY = Verdict(Decision.ALLOW, "yes"), Verdict(Decision.DENY, "no", "broken")
UNSURE, LOST = Verdict(Decision.NO_OPINION, "hm"), Verdict(Decision.NO_OPINION, "what", "lost")


class Says:
    def __init__(self, verdict: Any, later: Any) -> None:
        self.verdict, self.later = verdict, later

    def authorize(self, attributes: Any) -> Any:
        return self.wait() if self.later else self.verdict

    async def wait(self) -> Any:
        return self.verdict


@pytest.mark.parametrize("later", [[False] * 3, [True, False, False], [False, True, False], [True] * 3])
@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([UNSURE, ALLOW, DENY], ALLOW),
        ([LOST, DENY, ALLOW], DENY),
        ([UNSURE, UNSURE, UNSURE], Verdict(Decision.NO_OPINION, "hm\nhm\nhm")),
        ([UNSURE, LOST, LOST], Verdict(Decision.NO_OPINION, "hm\nwhat\nwhat", "lost")),
        ([Verdict(Decision.NO_OPINION)] * 3, Verdict(Decision.NO_OPINION)),
    ],
)
async def test_the_first_opinion_decides_and_without_one_all_are_told(verdicts: Any, expected: Any, later: Any) -> None:
    assert await decide(UnionAuthorizer(map(Says, verdicts, later)), QUESTION) == expected


def test_answers_from_memory_are_not_waited_for() -> None:
    union = UnionAuthorizer([PrivilegedGroupAuthorizer(), AlwaysDenyAuthorizer()])
    assert union.authorize(QUESTION) == Verdict(Decision.NO_OPINION, "Everything is forbidden.")
    master = Attributes(UserInfo("admin", groups=("x", "system:masters")), Action("delete"))
    verdict = union.authorize(master)
    assert isinstance(verdict, Verdict)
    assert verdict.allowed


async def test_always_allow_allows_and_says_so_in_rules() -> None:
    assert AlwaysAllowAuthorizer().authorize(QUESTION) == Verdict(Decision.ALLOW)
    rules = await UnionRuleResolver([AlwaysAllowAuthorizer(), AlwaysDenyAuthorizer()]).rules_for(BOB, "n")
    assert rules == ResolvedRules(
        (PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"]),),
        (PolicyRule(verbs=["*"], non_resource_urls=["*"]),),
    )


async def test_rule_resolvers_add_up() -> None:
    class Knows:
        def __init__(self, rules: Any) -> None:
            self.rules = rules

        async def rules_for(self, user: Any, namespace: Any) -> Any:
            return self.rules

    first, second = PolicyRule(verbs=["a"]), PolicyRule(verbs=["b"])
    union = UnionRuleResolver(
        [Knows(ResolvedRules((first,), incomplete=True, error="x")), Knows(ResolvedRules((second,), error="y"))]
    )
    assert await union.rules_for(BOB, "n") == ResolvedRules((first, second), incomplete=True, error="[x, y]")


def resource(
    verb: Any, name: Any = "", namespace: Any = "", group: Any = "", what: Any = "pods", subresource: Any = ""
) -> Any:
    return Attributes(BOB, Action(verb, group, "v1", what, subresource, namespace, name))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            resource("list", what="namespaces"),
            'namespaces is forbidden: User "bob" cannot list resource "namespaces" in API group "" at the cluster '
            "scope",
        ),
        (
            resource("get", "p", "ns", subresource="log"),
            'pods "p" is forbidden: User "bob" cannot get resource "pods/log" in API group "" in the namespace "ns"',
        ),
        (
            resource("get", "x", "ns", "nosuch.example.com", "things"),
            'things.nosuch.example.com "x" is forbidden: User "bob" cannot get resource "things" in API group '
            '"nosuch.example.com" in the namespace "ns"',
        ),
        (
            Attributes(BOB, Action("post"), "/metrics"),
            'forbidden: User "bob" cannot post path "/metrics"',
        ),
        (
            Attributes(UserInfo('<b>"&'), Action("get"), "/a"),
            'forbidden: User "&lt;b&gt;\\"&amp;" cannot get path "/a"',
        ),
    ],
)
def test_refusals_read_as_the_reference_s(attributes: Any, message: str) -> None:
    error = forbidden_error(attributes)
    assert (error.code, error.reason, error.message) == (403, "Forbidden", message)


def test_refusals_end_with_the_authorizers_reason() -> None:
    error = forbidden_error(resource("list", namespace="ns"), 'RBAC: role.rbac.authorization.k8s.io "x<" not found')
    assert error.message.endswith('in the namespace "ns": RBAC: role.rbac.authorization.k8s.io "x<" not found')
    assert error.status()["details"] == {"kind": "pods"}
    assert forbidden_error(Attributes(BOB, Action("get"), "/a")).status()["details"] == {}


def test_errors_are_shown_without_markup() -> None:
    assert internal_error_text("/a?<b>", "no & more") == 'Internal Server Error: "/a?&lt;b&gt;": no &amp; more'
