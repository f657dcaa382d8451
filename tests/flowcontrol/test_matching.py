"""Matching of requests to flow schemas."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.flowcontrol.v1 import FlowSchemaSpec
from steersman.flowcontrol.matching import Digest, Matcher, Matchers
from steersman.machinery.identity.action import Action


def _matcher(subjects: str, resources: str = "[]", paths: str = "[]") -> Matcher:
    rules = f'{{"rules":[{{"subjects":{subjects},"resourceRules":{resources},"nonResourceRules":{paths}}}]}}'
    return Matcher(msgspec.json.decode(rules, type=FlowSchemaSpec))


_ALL = '[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"namespaces":["*"],"clusterScope":true}]'
_ALICE = '[{"kind":"User","user":{"name":"alice"}}]'


def _digest(user: str, *groups: str, action: Action | None = None, path: str | None = None) -> Digest:
    return Digest(user, groups, action or Action("get", "", "v1", "pods", "", "default", "p"), path)


@pytest.mark.parametrize(
    ("subject", "user", "groups"),
    [
        ('{"kind":"User","user":{"name":"alice"}}', "alice", ()),
        ('{"kind":"User","user":{"name":"*"}}', "anybody", ()),
        ('{"kind":"Group","group":{"name":"dev"}}', "x", ("ops", "dev")),
        ('{"kind":"Group","group":{"name":"*"}}', "x", ()),
        ('{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"s"}}', "system:serviceaccount:n:s", ()),
        ('{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"*"}}', "system:serviceaccount:n:t", ()),
    ],
)
def test_subjects(subject: str, user: str, groups: tuple[str, ...]) -> None:
    assert _matcher(f"[{subject}]", _ALL).matches(_digest(user, *groups))


@pytest.mark.parametrize(
    "subject",
    [
        '{"kind":"User","user":{"name":"bob"}}',
        '{"kind":"Group","group":{"name":"alice"}}',
        '{"kind":"ServiceAccount","serviceAccount":{"namespace":"ali","name":"*"}}',
        '{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"s"}}',
        '{"kind":"Robot","user":{"name":"alice"}}',
    ],
)
def test_others_are_not_meant(subject: str) -> None:
    assert not _matcher(f"[{subject}]", _ALL).matches(_digest("alice"))
    assert not _matcher(f"[{subject}]", _ALL).matches(_digest("system:serviceaccount:namespace:x"))


def test_resources_have_to_be_named_with_their_subresources() -> None:
    rule = '[{"verbs":["get","list"],"apiGroups":["apps"],"resources":["deployments/scale"],"namespaces":["a"]}]'
    matcher = _matcher(_ALICE, rule)

    def is_meant(verb: str, group: str, resource: str, subresource: str, namespace: str) -> bool:
        return matcher.matches(_digest("alice", action=Action(verb, group, "v1", resource, subresource, namespace)))

    assert is_meant("get", "apps", "deployments", "scale", "a")
    assert not is_meant("get", "apps", "deployments", "", "a")
    assert not is_meant("update", "apps", "deployments", "scale", "a")
    assert not is_meant("get", "", "deployments", "scale", "a")
    assert not is_meant("get", "apps", "deployments", "scale", "b")
    assert not is_meant("get", "apps", "deployments", "scale", "")


def test_what_is_in_no_namespace_needs_cluster_scope() -> None:
    nodes = Action("get", "", "v1", "nodes", "", "", "n")
    for scope, meant in (("true", True), ("false", False)):
        rule = f'[{{"verbs":["*"],"apiGroups":[""],"resources":["nodes"],"clusterScope":{scope},"namespaces":["*"]}}]'
        assert _matcher(_ALICE, rule).matches(_digest("alice", action=nodes)) is meant


@pytest.mark.parametrize(
    ("url", "path", "meant"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/ping", True),
        ("/healthz", "/healthzz", False),
        ("/logs/*", "/logs/x", True),
        ("/logs/*", "/logs", False),
        ("*", "/anything", True),
    ],
)
def test_paths(url: str, path: str, meant: bool) -> None:
    matcher = _matcher(_ALICE, _ALL, f'[{{"verbs":["get"],"nonResourceURLs":["{url}"]}}]')
    assert matcher.matches(_digest("alice", action=Action("get"), path=path)) is meant
    assert not matcher.matches(_digest("alice", action=Action("post"), path=path))


_USERS = (
    "alice",
    "bob",
    "system:serviceaccount:n:s",
    "system:serviceaccount:n:",
    "system:serviceaccount:",
    "user alice",
)
_GROUPS = ("dev", "ops", "alice", "group dev")


@st.composite
def _subject(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["User", "Group", "ServiceAccount"]))
    if kind == "ServiceAccount":
        name = draw(st.sampled_from(["s", "t", "*"]))
        namespace = draw(st.sampled_from(["n", "m", "n:s"]))
        return f'{{"kind":"ServiceAccount","serviceAccount":{{"namespace":"{namespace}","name":"{name}"}}}}'
    names = _USERS if kind == "User" else _GROUPS
    return f'{{"kind":"{kind}","{kind.lower()}":{{"name":"{draw(st.sampled_from([*names, "*"]))}"}}}}'


@given(
    st.lists(st.lists(_subject(), max_size=3), max_size=6),
    st.sampled_from([*_USERS, "system:serviceaccount:n:s:t"]),
    st.sets(st.sampled_from(_GROUPS)),
)
def test_of_many_schemas_the_first_is_found_that_one_by_one_would_be(
    subjects: list[list[str]], user: str, groups: set[str]
) -> None:
    many = [_matcher(f"[{','.join(each)}]", _ALL) for each in subjects]
    digest = _digest(user, *groups)
    found = next((number for number, each in enumerate(many) if each.matches(digest)), None)
    assert Matchers(many).first(digest) == found


def test_who_is_meant_by_none_of_thousands_is_held_against_none(monkeypatch: pytest.MonkeyPatch) -> None:
    large = ",".join(f'{{"kind":"User","user":{{"name":"v{number}"}}}}' for number in range(65))
    many = [_matcher(f'[{{"kind":"User","user":{{"name":"u{number}"}}}}]', _ALL) for number in range(2000)]
    many.append(_matcher(f"[{large}]", _ALL))
    assert many[-1].names is None  # so many names are not worth remembering
    asked: list[Matcher] = []
    matches = Matcher.matches

    def asked_and_answered(self: Matcher, digest: Digest) -> bool:
        asked.append(self)
        return matches(self, digest)

    monkeypatch.setattr(Matcher, "matches", asked_and_answered)
    assert Matchers(many).first(_digest("bob", "dev")) is None
    assert Matchers(many).first(_digest("u7")) == 7
    assert asked == [many[-1], many[7]]
