"""Admission of pods by a node."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import (
    Container,
    ContainerPort,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodOS,
    PodSecurityContext,
    PodSpec,
    ResourceRequirements,
    Sysctl,
    Taint,
    Toleration,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.nodes.admission import Allocated, Refusal, refusal

MEMORY = ("MemoryPressure",)


def node(*taints: Taint, **allocatable: str) -> Node:
    return Node(
        metadata=ObjectMeta(name="n", labels={"disk": "ssd"}),
        spec=NodeSpec(taints=list(taints)),
        status=NodeStatus(allocatable={"cpu": "4", "memory": "8Gi", "pods": "3", **allocatable}),
    )


def pod(name: str = "p", port: int = 0, host_ip: str = "", requests: dict[str, str] | None = None, **spec: Any) -> Pod:
    ports = [ContainerPort(container_port=80, host_port=port, host_ip=host_ip)] if port else []
    container = Container(name="c", ports=ports, resources=ResourceRequirements(requests=requests or {}))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="d", generation=1), spec=PodSpec(containers=[container], **spec)
    )


def taken(*pods: Pod) -> Allocated:
    allocated = Allocated()
    for each in pods:
        allocated.put(each)
    return allocated


LARGE = pod("large", requests={"cpu": "2500m", "memory": "6Gi", "example.com/gpu": "1"})


@pytest.mark.parametrize(
    ("requests", "refused"),
    [
        ({"cpu": "1500m"}, None),
        (
            {"cpu": "1501m"},
            Refusal("OutOfcpu", "Node didn't have enough resource: cpu, requested: 1501, used: 2500, capacity: 4000"),
        ),
        (
            {"memory": "3Gi"},
            Refusal(
                "OutOfmemory",
                "Node didn't have enough resource: memory, requested: 3221225472, used: 6442450944, "
                "capacity: 8589934592",
            ),
        ),
        (
            {"example.com/gpu": "1"},
            Refusal(
                "OutOfexample.com/gpu",
                "Node didn't have enough resource: example.com/gpu, requested: 1, used: 1, capacity: 1",
            ),
        ),
        ({"example.com/unknown": "1"}, None),
    ],
)
def test_insufficient_resources_are_reported(requests: dict[str, str], refused: Refusal | None) -> None:
    assert refusal(pod(requests=requests), node(**{"example.com/gpu": "1"}), taken(LARGE), ()) == refused


def test_a_node_has_room_for_so_many_pods() -> None:
    there = taken(pod("a"), pod("b"), pod("c"))
    text = "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"
    assert refusal(pod(), node(), there, ()) == Refusal("OutOfpods", text)
    assert refusal(pod("c"), node(), there, ()) is None
    there.remove(("d", "a"))
    assert refusal(pod(), node(), there, ()) is None


def test_pods_that_are_gone_or_were_changed_take_what_they_ask_for_now() -> None:
    there = taken(LARGE)
    changed = pod("large", requests={"cpu": "4"})
    changed.metadata.generation = 2
    there.put(changed)
    assert refusal(pod(requests={"cpu": "1m"}), node(), there, ()) is not None
    there.remove(("d", "large"))
    assert refusal(pod(requests={"cpu": "4"}), node(), there, ()) is None


def test_labels_taints_and_ports_are_checked() -> None:
    assert refusal(pod(node_selector={"disk": "hdd"}), node(), taken(), ()) == Refusal(
        "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    )
    assert refusal(pod(node_selector={"disk": "ssd"}), node(), taken(), ()) is None
    gone = Taint(key="gone", effect="NoExecute")
    assert refusal(pod(), node(gone), taken(), ()) == Refusal(
        "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    )
    assert refusal(pod(tolerations=[Toleration(operator="Exists")]), node(gone), taken(), ()) is None
    assert refusal(pod(), node(Taint(key="full", effect="NoSchedule")), taken(), ()) is None
    there = taken(pod("web", 80, "10.0.0.1"))
    assert refusal(pod(port=80), node(), there, ()) == Refusal(
        "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    )
    assert refusal(pod(port=80, host_ip="10.0.0.2"), node(), there, ()) is None


def test_a_node_under_pressure_takes_few() -> None:
    refused = Refusal("Evicted", "The node had condition: [MemoryPressure]. ")
    assert refusal(pod(), node(), taken(), MEMORY) == refused
    assert refusal(pod(requests={"cpu": "1"}), node(), taken(), MEMORY) is None
    tolerated = Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule")
    assert refusal(pod(tolerations=[tolerated]), node(), taken(), MEMORY) is None
    assert refusal(pod(priority=2_000_001_000), node(), taken(), ("DiskPressure",)) is None
    both = refusal(pod(requests={"cpu": "1"}), node(), taken(), ("MemoryPressure", "DiskPressure"))
    assert both == Refusal("Evicted", "The node had condition: [MemoryPressure DiskPressure]. ")


@pytest.mark.parametrize(
    ("names", "spec", "why"),
    [
        (["net.ipv4.tcp_syncookies", "kernel.shm_rmid_forced", "net/ipv4/tcp_rmem"], {}, ""),
        (["kernel.msgmax"], {}, '"kernel.msgmax" not allowlisted'),
        (["net/ipv4/conf/eno2.100/rp_filter"], {}, '"net.ipv4.conf.eno2/100.rp_filter" not allowlisted'),
        (["net.ipv4.tcp_rmem"], {"host_network": True}, '"net.ipv4.tcp_rmem" not allowed with host Net enabled'),
        (["kernel.shm_rmid_forced"], {"host_ipc": True}, '"kernel.shm_rmid_forced" not allowed with host IPC enabled'),
    ],
)
def test_parameters_of_the_kernel_are_a_pods_own(names: list[str], spec: dict[str, Any], why: str) -> None:
    security = PodSecurityContext(sysctls=[Sysctl(name=each, value="1") for each in names])
    refused = refusal(pod(security_context=security, **spec), node(), Allocated(), ())
    assert refused == (Refusal("SysctlForbidden", f"forbidden sysctl: {why}") if why else None)


def test_a_pod_of_another_operating_system_is_not_taken() -> None:
    text = "Failed to admit pod as the OS field doesn't match node OS"
    assert refusal(pod(os=PodOS(name="windows")), node(), Allocated(), ()) == Refusal("PodOSNotSupported", text)
    assert refusal(pod(os=PodOS(name="linux")), node(), Allocated(), ()) is None
