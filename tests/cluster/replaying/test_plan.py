"""Plans of replays: the actions of users, and nothing that controllers do by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.cluster.replaying.plan import Planner, ends_of
from steersman.cluster.replaying.wishes import difference, is_of_user, wish
from steersman.dumps.errors import DumpError
from steersman.dumps.recordings import Change, Type

PREFIX = "simulation.steersman.dev"


def obj(kind: str, name: str, version: str = "v1", owner: str = "", **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"u-{name}", **more.pop("metadata", {})}
    if owner:
        kind_of_owner, _, owner_name = owner.partition("/")
        metadata["ownerReferences"] = [
            {"kind": kind_of_owner, "name": owner_name, "uid": f"u-{owner_name}", "controller": True}
        ]
    return {"kind": kind, "apiVersion": version, "metadata": metadata, **more}


def actions(*changes: tuple[Type, dict[str, Any]]) -> list[tuple[str, str, Any]]:
    recorded = [Change(number, type_, each) for number, (type_, each) in enumerate(changes)]
    planner = Planner(ends_of(recorded))
    return [(each.verb, each.key[1], each.body) for change in recorded for each in planner.actions(change)]


def deployment(replicas: int, image: str = "a", **more: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": image}]}}
    return obj("Deployment", "web", "apps/v1", spec={"replicas": replicas, "template": template}, **more)


def test_what_was_there_is_not_made_again_and_changes_are_patches() -> None:
    found = actions(
        ("PRESENT", deployment(1, status={"replicas": 1})),
        ("MODIFIED", deployment(1, status={"replicas": 1, "readyReplicas": 1})),
        ("MODIFIED", deployment(3, metadata={"annotations": {"deployment.kubernetes.io/revision": "1"}})),
        ("DELETED", deployment(3)),
    )
    assert found == [("patch", "Deployment", {"spec": {"replicas": 3}}), ("delete", "Deployment", {})]


def test_objects_of_controllers_are_left_to_controllers() -> None:
    assert not actions(
        ("ADDED", obj("ReplicaSet", "web-1", "apps/v1", owner="Deployment/web")),
        ("ADDED", obj("Pod", "web-1-x", owner="ReplicaSet/web-1", spec={"containers": []})),
        ("ADDED", obj("EndpointSlice", "web-x", "discovery.k8s.io/v1")),
        ("ADDED", obj("ConfigMap", "kube-root-ca.crt")),
        ("DELETED", obj("Pod", "web-1-x", owner="ReplicaSet/web-1", spec={"containers": []})),
    )
    of_an_operator = obj("ConfigMap", "a", owner="Widget/w")
    assert is_of_user(of_an_operator)
    assert "ownerReferences" not in wish(of_an_operator)["metadata"]


def test_replicas_that_an_autoscaler_sets_are_left_to_it() -> None:
    target = {"kind": "Deployment", "name": "web"}
    scaler = obj("HorizontalPodAutoscaler", "web", "autoscaling/v2", spec={"scaleTargetRef": target})
    found = actions(
        ("PRESENT", deployment(1)),
        ("PRESENT", scaler),
        ("MODIFIED", deployment(5)),
        ("MODIFIED", deployment(6, image="b")),
        ("DELETED", scaler),
        ("MODIFIED", deployment(7, image="b")),
    )
    changed = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "b"}]}}}}
    assert found[0] == ("patch", "Deployment", changed)
    assert found[2] == ("patch", "Deployment", {"spec": {"replicas": 7}})
    assert len(found) == 3


def test_pods_end_as_they_did() -> None:
    ended = {"exitCode": 2, "startedAt": "2026-11-20T08:00:00Z", "finishedAt": "2026-11-20T08:01:30Z"}
    status = {"containerStatuses": [{"name": "c", "state": {"terminated": ended}}]}
    job = obj("Job", "j", "batch/v1", spec={"template": {"spec": {"containers": [{"name": "c"}]}}})
    pod = obj("Pod", "j-x", owner="Job/j", spec={"containers": [{"name": "c"}]})
    alone = obj("Pod", "p", spec={"containers": [{"name": "c"}]})
    found = actions(
        ("ADDED", job),
        ("ADDED", pod),
        ("ADDED", alone),
        ("MODIFIED", {**pod, "status": status}),
        ("MODIFIED", {**alone, "status": status}),
        ("MODIFIED", {**alone, "metadata": {**alone["metadata"], "deletionTimestamp": "2026-11-20T08:02:00Z"}}),
        ("DELETED", alone),
    )
    expected = {f"{PREFIX}/run-for.c": "90s", f"{PREFIX}/exit-code.c": "2"}
    assert [(verb, kind) for verb, kind, _ in found] == [("create", "Job"), ("create", "Pod"), ("delete", "Pod")]
    assert found[0][2]["spec"]["template"]["metadata"]["annotations"] == expected
    assert found[1][2]["metadata"]["annotations"] == expected


def test_finalizers_of_programs_that_do_not_run_hold_nothing_up() -> None:
    held = obj("ConfigMap", "a", metadata={"finalizers": ["example.com/clean"]})
    found = actions(("PRESENT", held), ("DELETED", held))
    assert found == [("delete", "ConfigMap", {"metadata": {"finalizers": None}})]


def test_a_wish_has_nothing_that_servers_fill_in() -> None:
    pod = obj(
        "Pod",
        "p",
        spec={
            "nodeName": "n",
            "priority": 0,
            "containers": [{"name": "c", "volumeMounts": [{"name": "kube-api-access-x"}, {"name": "data"}]}],
            "volumes": [{"name": "kube-api-access-x"}, {"name": "data"}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "tolerationSeconds": 300}, {"key": "own"}],
        },
        status={"phase": "Running"},
    )
    assert wish(pod) == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "volumeMounts": [{"name": "data"}]}],
            "volumes": [{"name": "data"}],
            "tolerations": [{"key": "own"}],
        },
    }
    service = obj("Service", "s", spec={"clusterIP": "10.0.0.1", "ports": [{"port": 1, "nodePort": 30000}]})
    assert wish(service)["spec"] == {"ports": [{"port": 1}]}
    labels = {"app": "a", "batch.kubernetes.io/controller-uid": "u"}
    job = obj("Job", "j", "batch/v1", spec={"selector": {}, "template": {"metadata": {"labels": labels}}})
    assert wish(job)["spec"] == {"template": {"metadata": {"labels": {"app": "a"}}}}
    assert job["spec"]["template"]["metadata"]["labels"] == labels


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": [1]}, {"a": [1, 2], "b": {}}, {"a": [1, 2], "b": {}}),
        ({"a": {"b": 1}}, {"a": 3}, {"a": 3}),
    ],
)
def test_differences_are_merge_patches(old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]) -> None:
    assert difference(old, new) == patch


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": {"containers": 3}},
        {"spec": {"volumes": [3]}},
        {"status": {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": "x"}}}]}},
        {"metadata": {"name": "p", "ownerReferences": 3}},
        {"metadata": {"name": "p", "annotations": [1]}},
    ],
)
def test_malformed_objects_are_named(changes: dict[str, Any]) -> None:
    with pytest.raises(DumpError, match='Pod "p" at 0'):
        actions(("ADDED", {**obj("Pod", "p", spec={"containers": []}), **changes}))
