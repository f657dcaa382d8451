"""Flow schemas and the requests that they are about."""

from __future__ import annotations

import msgspec
import pytest

from steersman.api.flowcontrol.v1 import FlowSchemaSpec
from steersman.flowcontrol.matching import Digest, Matcher
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
