"""Reports on requests: counts, observations, roles and budgets."""

from __future__ import annotations

import time
from typing import Any

import pytest

from steersman.report import tally as tallies
from steersman.report.report import OverBudget, Report
from steersman.report.roles import least_rules, unused_rights
from steersman.report.tally import Tally

OPERATOR = "operator/v1 (linux/amd64) abc"


def line(verb: str, resource: str = "configmaps", code: int = 200, **facts: Any) -> dict[str, Any]:
    """Return a line of /debug/requests."""
    found = {"verb": verb, "resource": resource, "code": code, "namespace": "default", "name": "a", "user": "jane"}
    return {**found, "userAgent": OPERATOR, "path": "/x", "milliseconds": 1.5, **facts}


def report(*lines: dict[str, Any], user_agent: str = "") -> Report:
    """Return the report on lines."""
    tally = Tally()
    for each in lines:
        tally.add(each)
    return Report(tally, user_agent)


def messages(found: Report) -> list[str]:
    return [each.message for each in found.observations]


def test_requests_are_counted_by_client_verb_and_resource() -> None:
    found = report(
        line("get"),
        line("get", code=404),
        line("update", "deployments", apiGroup="apps", subresource="status"),
        line("list", userAgent="kubectl/v1", limited=True),
        line("get", user="system:apiserver"),
        {"dropped": 3},
    )
    assert [(each.user_agent, each.user, each.total) for each in found.clients] == [
        ("operator/v1", "jane", 3),
        ("kubectl/v1", "jane", 1),
    ]
    assert found.clients[0].requests == {("", "configmaps", "get"): 2, ("apps", "deployments/status", "update"): 1}
    assert [found.count(), found.count("get"), found.count("write"), found.count("list", "configmaps")] == [4, 2, 1, 1]
    assert [found.count("", "deployments/status.apps"), found.count("", "deployments/status")] == [1, 1]
    assert found.dropped == 3
    with pytest.raises(ValueError, match="no verb 'POST'; known are"):
        found.count("POST")
    assert found.count("delete") == 0


def test_requests_in_vain_are_observed() -> None:
    found = report(
        *[line("update", unchanged=True)] * 2,
        *[line("patch", name="b", unchanged=False)] * 10,
        *[line("list", limited=False)] * 2,
        *[line("watch")] * 3,
        line("update", code=409),
        line("create", code=429),
        line("get", code=503),
    )
    assert messages(found) == [
        "configmaps default/b was written 10 times",
        "2 further watches of configmaps of the namespace default",
        "2 lists of all configmaps, without limit or selector",
        "2 writes of configmaps default/a changed nothing",
        "1 request failed on the server's side (5xx): get configmaps",
        "1 request had to come again later (429): create configmaps",
        "1 request met a conflict (409): update configmaps",
    ]


def test_questions_for_readiness_are_no_failures() -> None:
    asked = line("get", resource="", code=500, path="/healthz/etcd", namespace="", name="")
    assert messages(report(asked)) == []
    assert messages(report({**asked, "path": "/version"})) == [
        "1 request failed on the server's side (5xx): get /version"
    ]


def test_writers_that_take_turns_are_observed() -> None:
    one, other = line("update", unchanged=False), line("patch", unchanged=False, userAgent="rival/v2")
    assert messages(report(one, other, one, other)) == ["change configmaps default/a in turns, 3 times"]
    assert messages(report(one, one, other)) == []
    still = {**other, "unchanged": True}
    assert "in turns" not in str(messages(report(one, still, one, still)))


def test_the_least_role_has_what_was_used_and_allowed() -> None:
    found = report(
        line("get"),
        line("watch"),
        line("get", "secrets"),
        line("watch", "secrets"),
        line("create", "pods", code=403, denied=True),
        line("delete", "pods", code=403),
        line("update", "deployments", apiGroup="apps", subresource="status", code=409),
        line("get", "", path="/metrics"),
        line("get", "", path="/api"),
    )
    assert {
        "1 request lacked a right (403): create pods",
        "1 request did not pass admission (403): delete pods",
    } <= set(messages(found))
    assert found.role("mine") == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "mine"},
        "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]},
            {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "watch"]},
            {"apiGroups": ["apps"], "resources": ["deployments/status"], "verbs": ["update"]},
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        ],
    }


def test_no_request_makes_the_least_role_larger_than_what_was_asked() -> None:
    found = report(
        line("get", "*"),
        line("get", "pods", apiGroup="*"),
        line("get", "pods/*"),
        line("get", "pods", subresource="*"),
        line("get", "", path="/metrics/*"),
        line("get", "", path="*"),
        line("get", "", path="/apiary"),
        line("get", "", path="/openapi/v3/apis/apps"),
    )
    assert found.role()["rules"] == [{"nonResourceURLs": ["/apiary"], "verbs": ["get"]}]


def test_roles_of_any_shape_are_compared_in_bounded_time() -> None:
    many = ["a"] * 100_000
    for empty in ("verbs", "apiGroups", "resources"):
        rule = {**dict.fromkeys(("verbs", "apiGroups", "resources", "nonResourceURLs"), many), empty: []}
        assert len(unused_rights([rule], [])) <= 10_000
    assert unused_rights([{"verbs": many, "apiGroups": many, "resources": []}], []) == []


def test_rights_that_were_not_used() -> None:
    rules = [
        {"apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": ["*"], "resources": ["secrets"], "verbs": ["get"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        "no rule",
        {"verbs": 3},
    ]
    used = [("", "pods", "get"), ("", "secrets", "get"), ("", "/metrics", "get")]
    assert unused_rights(rules, used) == ["get pods.apps", "get secrets.*", "list pods", "list pods.apps"]
    assert unused_rights(least_rules(used), used) == []


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"requests": 4}, "5 requests, at most 4"),
        ({"writes": 2}, "3 writes, at most 2"),
        ({"writes_per_object": 1}, "2 writes of one object, at most 1"),
        ({"unchanged_writes": 0}, "1 writes that changed nothing, at most 0"),
        ({"unlimited_lists": 0}, "1 lists without limit or selector"),
        ({"conflicts": 0}, "1 conflicts, at most 0"),
        ({"errors": 0}, "1 errors, at most 0"),
    ],
)
def test_budgets(budget: dict[str, int], message: str) -> None:
    found = report(
        line("update", unchanged=True),
        line("update", unchanged=False),
        line("update", code=409),
        line("list", limited=False),
        line("get"),
    )
    with pytest.raises(OverBudget, match=message):
        found.at_most(**budget)
    found.at_most(**{name: number + 5 for name, number in budget.items()})


def test_clients_objects_and_kinds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_CLIENTS", "MOST_OBJECTS", "MOST_KINDS"):
        monkeypatch.setattr(tallies, name, 3)
    found = report(*(line("update", f"r{number}", name=f"n{number}", user=f"u{number % 5}") for number in range(50)))
    assert [each.user for each in found.clients] == ["", "u0", "u1", "u2"]
    assert sum(each.total for each in found.clients) == 50
    for client in found.clients:
        assert len(client.requests) <= 4
        assert len(client.writes) <= 4


def test_lines_of_another_shape_are_refused() -> None:
    for strange in ({"verb": 3}, {"verb": "get", "code": "many"}, {"verb": "get", "limited": 3}):
        with pytest.raises(ValueError, match="no line about a request"):
            Tally().add(strange)


def test_counting_takes_time_in_proportion_to_lines() -> None:
    lines = [line("update", f"r{number % 50}", name=f"n{number}", user=f"u{number % 20}") for number in range(8_000)]

    def seconds(number: int) -> float:
        begin = time.process_time()
        report(*lines[:number])
        return time.process_time() - begin

    seconds(100)
    assert seconds(8_000) < 16 * max(seconds(2_000), 0.005)


def test_fights_over_a_field_are_told_with_the_field() -> None:
    one = line("update", "deployments", apiGroup="apps", unchanged=False, changed=[".spec.replicas", ".status.x"])
    other = {**one, "userAgent": "rival/v2", "changed": [".spec.replicas"]}
    assert messages(report(one, other, one, other)) == [
        "change spec.replicas of deployments.apps default/a in turns, 3 times"
    ]
    status = {**other, "changed": [".status.ready"]}
    assert messages(report(one, status, one, status)) == []


def test_informers_that_start_again_are_told() -> None:
    begun = [line("list", initial=True), line("watch", id="w", open=True), line("watch", id="w")]
    assert messages(report(*begun)) == []
    assert report(*begun).count("watch") == 1
    assert "1 further start of an informer of configmaps of the namespace default" in messages(report(*begun, *begun))
    tally = Tally()
    for _ in range(3):
        tally.begin_server()
        for each in begun:
            tally.add(each)
    assert Report(tally).observations == []


def test_warnings_of_deprecated_versions_and_others() -> None:
    old = "v1 ComponentStatus is deprecated in v1.19+"
    found = report(line("list", warnings=[old]), line("list", warnings=[old]), line("create", warnings=["odd"]))
    assert [(each.kind, each.message) for each in found.observations] == [
        ("DeprecatedAPIs", f"2 answers with the warning: {old}"),
        ("Warnings", "1 answer with the warning: odd"),
    ]
    with pytest.raises(OverBudget, match="3 warnings, at most 0"):
        found.at_most(warnings=0)


def test_writes_for_each_change_that_a_client_watches() -> None:
    before = line("create", userAgent="kubectl/v1")
    change = {**before, "name": "b"}
    found = report(before, line("watch", id="w", open=True), change, *[line("update", unchanged=False)] * 2)
    assert [found.changes(each) for each in found.clients if each.user_agent == "operator/v1"] == [1]
    found.at_most(writes_per_change=2)
    with pytest.raises(OverBudget, match=r"2 writes for each change that it watches, at most 1\.5"):
        found.at_most(writes_per_change=1.5)


def test_creating_by_an_apply_needs_the_right_to_create() -> None:
    found = report(line("patch", code=201), line("patch", "widgets", apiGroup="x", subresource="status", code=200))
    assert found.role()["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]},
        {"apiGroups": ["x"], "resources": ["widgets/status"], "verbs": ["patch"]},
    ]
