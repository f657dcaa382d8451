"""Tests of plugins about pods and nodes: topology labels, taints of new nodes, features, resizes."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_plugins.node_declared_feature_validator import NodeDeclaredFeatureValidator, declared_features
from steersman.admission_plugins.pod_resize_validator import PodResizeValidator, host_of
from steersman.admission_plugins.pod_topology_labels import PodTopologyLabels, topology_of
from steersman.admission_plugins.taint_nodes_by_condition import TaintNodesByCondition
from steersman.api.core.v1 import Binding, Node
from steersman.machinery.codec.serializer import from_plain, to_plain
from tests.admission_plugins.pods_and_namespaces import CONTAINER, a_write, admitted, an_update, make_pod, refusal

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


def a_node(name: str = "n", status: dict[str, Any] | None = None, **labels: str) -> Node:
    return from_plain(Node, {"metadata": {"name": name, "labels": labels}, "status": status or {}})


def taints(node: Node) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = to_plain(node)["spec"].get("taints", [])
    return found


async def test_a_new_node_is_tainted_once() -> None:
    record = await admitted(TaintNodesByCondition(), a_write(a_node(), resource="nodes"))
    not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert taints(record.obj) == [not_ready]
    assert taints((await admitted(TaintNodesByCondition(), a_write(record.obj, resource="nodes"))).obj) == [not_ready]


PLACED = from_plain(Node, {"metadata": {"name": "n", "labels": {ZONE: "z", REGION: "r", "other": "o"}}})
TOPOLOGY = PodTopologyLabels({"n": topology_of(PLACED), "bare": {}}.get)


async def test_a_pod_made_on_a_node_gets_its_zone_and_region() -> None:
    record = await admitted(TOPOLOGY, a_write(make_pod({"nodeName": "n"}, labels={ZONE: "mine", "a": "b"})))
    assert record.obj.metadata.labels == {ZONE: "z", REGION: "r", "a": "b"}
    for node in ("bare", "missing", ""):
        assert (await admitted(TOPOLOGY, a_write(make_pod({"nodeName": node})))).obj.metadata.labels == {}


@pytest.mark.parametrize(("kind", "labels"), [("Node", {ZONE: "z", REGION: "r"}), ("", {}), ("Other", {})])
async def test_a_binding_to_a_node_hands_them_on(kind: str, labels: Any) -> None:
    binding = from_plain(Binding, {"metadata": {"name": "p", "namespace": "ns"}, "target": {"kind": kind, "name": "n"}})
    record = await admitted(TOPOLOGY, a_write(binding, subresource="binding"))
    assert record.obj.metadata.labels == labels


def pod_with_requests(cpu: str, generation: int = 1, memory: str = "1Gi", node: str = "n", **more: Any) -> Any:
    container = CONTAINER | {"resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return make_pod({"nodeName": node, "containers": [container], **more}, generation=generation)


HOSTS = {
    "n": host_of(a_node(status={"allocatable": {"cpu": "2", "memory": "2Gi"}})),
    "windows": host_of(a_node("n", None, **{"kubernetes.io/os": "windows"})),
}
RESIZE = PodResizeValidator(HOSTS.get)


@pytest.mark.parametrize(
    ("pod", "why", "reasons"),
    [
        (
            pod_with_requests("3", 2),
            "node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2000",
            ["NodeCapacity"],
        ),
        (
            pod_with_requests("3", 2, "3Gi"),
            "node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2000; memory, "
            "requested: 3221225472, allocatable: 2147483648",
            ["NodeCapacity"],
        ),
        (
            pod_with_requests("1500m", 2, overhead={"cpu": "1"}),
            "node didn't have enough allocatable resources: cpu, requested: 2500, allocatable: 2000",
            ["NodeCapacity"],
        ),
        (
            pod_with_requests("1", 2, node="windows"),
            'pod resize is only supported on linux nodes, node "windows" is "windows"',
            ["UnsupportedPlatform"],
        ),
        (pod_with_requests("1", 2, node="gone"), 'node "gone" not found', []),
    ],
)
async def test_a_resize_must_fit_the_node(pod: Any, why: str, reasons: list[Any]) -> None:
    error = await refusal(RESIZE, an_update(pod, pod_with_requests("1"), subresource="resize"))
    assert (error.code, error.message) == (403, f'pods "p" is forbidden: {why}')
    assert [cause.reason for cause in error.causes] == reasons


async def test_a_resize_that_fits_or_changes_nothing_is_let_through() -> None:
    await admitted(RESIZE, an_update(pod_with_requests("2", 2), pod_with_requests("1"), subresource="resize"))
    await admitted(RESIZE, an_update(pod_with_requests("9"), pod_with_requests("9"), subresource="resize"))
    await admitted(RESIZE, an_update(pod_with_requests("9", 2), pod_with_requests("1")))
    await admitted(
        RESIZE, an_update(pod_with_requests("9", 2, node=""), pod_with_requests("1", node=""), subresource="resize")
    )


WHOLE, INIT = "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"
FEATURES = NodeDeclaredFeatureValidator(
    {
        "new": declared_features(a_node(status={"declaredFeatures": [WHOLE, INIT]})),
        "old": declared_features(a_node()),
    }.get
)


def pod_with_own_requests(cpu: str, node: str, generation: int = 1) -> Any:
    return make_pod({"nodeName": node, "resources": {"requests": {"cpu": cpu}}}, generation=generation)


async def test_a_change_that_the_node_does_not_know_of_is_refused() -> None:
    def resized(node: str, cpu: str = "2") -> Any:
        return an_update(pod_with_own_requests(cpu, node, 2), pod_with_own_requests("1", node), subresource="resize")

    error = await refusal(FEATURES, resized("old"))
    assert error.message == (
        f'pods "p" is forbidden: pod update requires features {WHOLE} which are not available on node "old"'
    )
    assert (await refusal(FEATURES, resized("gone"))).message == 'pods "p" is forbidden: node "gone" not found'
    await admitted(FEATURES, resized("new"))
    await admitted(FEATURES, resized("old", "1000m"))


@pytest.mark.parametrize(("sidecar", "refused"), [(False, True), (True, False)])
async def test_init_containers_that_end_are_resized_by_new_nodes_only(sidecar: bool, refused: bool) -> None:
    def with_init(cpu: str, generation: int) -> Any:
        first = CONTAINER | {"name": "i", "resources": {"requests": {"cpu": cpu}}}
        if sidecar:
            first["restartPolicy"] = "Always"
        return make_pod({"nodeName": "old", "initContainers": [first]}, generation=generation)

    update = an_update(with_init("2", 2), with_init("1", 1), subresource="resize")
    if refused:
        assert INIT in (await refusal(FEATURES, update)).message
    else:
        await admitted(FEATURES, update)
