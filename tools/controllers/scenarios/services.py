"""Services, their EndpointSlices and Endpoints."""

from __future__ import annotations

import json
from typing import Any

from tools.controllers.world import Plain, World

LABELS = {"app": "a"}
PORTS = [
    {"name": "http", "port": 80, "targetPort": "web"},
    {"name": "metrics", "port": 90, "targetPort": 9090},
    {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 5353},
]


def pod(world: World, name: str, ip: str, *, ready: bool = True, port: int = 8080, **spec: Any) -> None:
    """A pod that runs on a node, with an address, and says whether it is ready."""
    container = {"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": port}]}
    world.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": LABELS},
            "spec": {"nodeName": "node-a", "containers": [container], **spec},
        }
    )
    run(world, name, ip, ready=ready)


def run(world: World, name: str, ip: str, *, ready: bool = True) -> None:
    """Says that a pod runs at an address, and whether it is ready."""
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": world.now()}
    status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [condition]}
    world.patch("Pod", name, {"status": status}, "status")


def service(world: World, name: str = "s", labels: Plain | None = None, **spec: Any) -> None:
    """A Service of these pods."""
    given = {"selector": LABELS, "ports": PORTS, **spec}
    world.create_from("v1", "Service", name, given, labels=labels or {})


def followed(world: World) -> None:
    world.add_node("node-a", {"topology.kubernetes.io/zone": "a"})
    service(world, labels={"team": "x"})
    world.snapshot("no pods")
    pod(world, "one", "10.1.0.1")
    pod(world, "two", "10.1.0.2", ready=False)
    world.snapshot("two pods")
    run(world, "two", "10.1.0.2")
    world.snapshot("ready")
    pod(world, "other", "10.1.0.3", port=8081)
    world.snapshot("another port")
    world.patch("Service", "s", {"metadata": {"labels": {"team": "y", "more": "z"}}})
    world.snapshot("labels")
    world.patch("Pod", "one", {"metadata": {"labels": {"app": "b"}}})
    world.snapshot("left")
    world.patch("Service", "s", {"spec": {"ports": [{"port": 80, "protocol": "TCP", "$patch": "delete"}]}})
    world.snapshot("a port less")
    world.delete("Pod", "two")
    world.snapshot("terminating")
    world.end_pods()
    world.settle()
    ended = {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}]}
    world.patch("Pod", "other", {"status": ended}, "status")
    world.snapshot("none left")


def headless(world: World) -> None:
    world.add_node("node-a")
    service(world, clusterIP="None", ports=None)
    service(world, "all", clusterIP="None", publishNotReadyAddresses=True)
    pod(world, "one", "10.1.0.1", hostname="one", subdomain="s")
    pod(world, "two", "10.1.0.2", ready=False)
    world.snapshot("two pods")
    world.delete("Pod", "one")
    world.snapshot("terminating")


def near(world: World) -> None:
    world.add_node("node-a", {"topology.kubernetes.io/zone": "a"})
    service(world, trafficDistribution="PreferSameZone")
    pod(world, "one", "10.1.0.1")
    pod(world, "two", "10.1.0.2", ready=False)
    world.snapshot("zone")
    world.patch("Service", "s", {"spec": {"trafficDistribution": "PreferSameNode"}})
    world.snapshot("node")
    world.patch("Service", "s", {"spec": {"trafficDistribution": None}})
    world.snapshot("none")


def shared_by_zones(world: World) -> None:
    for name, zone in (("node-a", "a"), ("node-b", "b")):
        world.add_node(name, {"topology.kubernetes.io/zone": zone})
        ready = {"type": "Ready", "status": "True", "reason": "r", "message": "m"}
        world.patch("Node", name, {"status": {"allocatable": {"cpu": "4"}, "conditions": [ready]}}, "status")
    world.wait(3)
    world.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s", "annotations": {"service.kubernetes.io/topology-mode": "Auto"}},
            "spec": {"selector": LABELS, "ports": PORTS},
        }
    )
    for number in range(1, 8):
        pod(world, f"pod-{number}", f"10.1.0.{number}", nodeName="node-a" if number < 6 else "node-b")
    world.snapshots["hints"] = _hints(world)
    world.patch("Service", "s", {"metadata": {"annotations": {"service.kubernetes.io/topology-mode": None}}})
    world.snapshots["without"] = _hints(world)
    changes = ("Topology Aware Hints has been enabled", "Topology Aware Hints has been disabled")
    told = {f"{each['type']} {each['reason']}: {each['message']}" for each in world.list("Event")}
    world.snapshots["events"] = sorted(each for each in told if any(text in each for text in changes))


def _hints(world: World) -> list[Any]:
    """Return the zones and hints of all endpoints."""
    found = world.settle()
    return [
        sorted([each["zone"], json.dumps(each.get("hints"))] for each in slice_["endpoints"])
        for slice_ in found["EndpointSlice"]
    ]


def packed(world: World) -> None:
    """More endpoints than there is room for in a slice."""
    world.add_node("node-a")
    service(world, ports=[{"port": 80}])
    world.settle()
    for number in range(1, 131):
        pod(world, f"pod-{number}", f"10.1.0.{number}")
    world.snapshots["130"] = _sizes(world)
    for number in range(1, 31):
        world.delete("Pod", f"pod-{number}", gracePeriodSeconds=0)
    left = _sizes(world)
    world.snapshots["100"] = [sum(left), sum(left) <= 100 * len(left)]


def _sizes(world: World) -> list[int]:
    found = world.settle()
    return sorted(len(each["endpoints"]) for each in found["EndpointSlice"])


def over_capacity(world: World) -> None:
    """Endpoints keep the first thousand addresses, those that are ready first."""
    world.add_node("node-a")
    service(world, ports=[{"port": 80}])
    for number in range(1, 1011):
        pod(world, f"pod-{number}", f"10.1.{number // 250}.{number % 250 + 1}", ready=number % 100 != 0)
    world.wait(2)
    found = world.settle()
    endpoints = found["Endpoints"][0]
    world.snapshots["annotation"] = endpoints["metadata"]["annotations"].get("endpoints.kubernetes.io/over-capacity")
    world.snapshots["addresses"] = [
        [each["ip"] for each in subset.get(member, ())]
        for subset in endpoints["subsets"]
        for member in ("addresses", "notReadyAddresses")
    ]
    world.snapshots["slices"] = sum(len(each["endpoints"]) for each in found["EndpointSlice"])


def without_node(world: World) -> None:
    world.add_node("node-a")
    service(world)
    pod(world, "one", "10.1.0.1")
    pod(world, "lost", "10.1.0.2", nodeName="node-z")
    world.wait(1)
    world.snapshots["slices"] = [
        [each["targetRef"]["name"] for each in slice_["endpoints"]] for slice_ in world.list("EndpointSlice")
    ]
    world.add_node("node-z")
    world.wait(10)
    world.snapshots["found"] = [
        sorted(each["targetRef"]["name"] for each in slice_["endpoints"]) for slice_ in world.list("EndpointSlice")
    ]


def meddled_with(world: World) -> None:
    """Undo changes of slices by others."""
    world.add_node("node-a")
    service(world)
    pod(world, "one", "10.1.0.1")
    pod(world, "two", "10.1.0.2")
    name = world.settle()["EndpointSlice"][0]["metadata"]["name"]
    endpoint = {"addresses": ["10.9.9.9"], "conditions": {"ready": True}}
    world.patch("EndpointSlice", name, {"endpoints": [endpoint]})
    world.wait(2)
    world.snapshot("endpoints")
    world.delete("EndpointSlice", world.list("EndpointSlice")[0]["metadata"]["name"])
    world.wait(2)
    world.snapshot("deleted")
    world.delete("Endpoints", "s")
    world.snapshot("endpoints deleted")
    world.patch("Service", "s", {"spec": {"selector": None}})
    world.snapshot("without selector")
    world.delete("Service", "s")
    world.snapshot("gone")


def mirrored(world: World) -> None:
    world.create_from("v1", "Service", "s", {"ports": [{"name": "http", "port": 80}, {"name": "b", "port": 90}]})
    subsets = [
        {
            "addresses": [{"ip": "10.2.0.1"}, {"ip": "10.2.0.2", "hostname": "two", "nodeName": "node-a"}],
            "notReadyAddresses": [{"ip": "10.2.0.3"}],
            "ports": [{"name": "http", "port": 80}, {"name": "b", "port": 90}],
        },
        {"addresses": [{"ip": "10.2.0.4"}], "ports": [{"name": "b", "port": 91, "protocol": "UDP"}]},
    ]
    metadata = {"name": "s", "labels": {"team": "x"}, "annotations": {"note": "n"}}
    world.create({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets})
    world.snapshot("made")
    world.patch(
        "Endpoints",
        "s",
        {
            "subsets": [
                {"addresses": [{"ip": "10.2.0.1"}, {"ip": "10.2.0.7"}], "ports": [{"name": "http", "port": 80}]},
                {"addresses": [{"ip": "10.2.0.1"}], "ports": [{"name": "b", "port": 90}]},
            ]
        },
    )
    world.snapshot("changed")
    subset = {"addresses": [{"ip": "10.2.0.1"}, {"ip": "2001:db8::1"}], "ports": [{"name": "http", "port": 80}]}
    world.patch("Endpoints", "s", {"subsets": [subset]})
    world.snapshot("both families")
    world.patch("Endpoints", "s", {"metadata": {"labels": {"team": "y"}, "annotations": {"note": "m"}}})
    world.snapshot("labels")
    world.patch("Endpoints", "s", {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}})
    world.snapshot("skipped")
    world.patch("Endpoints", "s", {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": None}}})
    world.patch("Endpoints", "s", {"subsets": None})
    world.snapshot("empty")


SCENARIOS = {
    "services_followed": followed,
    "services_headless": headless,
    "services_near": near,
    "services_shared_by_zones": shared_by_zones,
    "services_packed": packed,
    "services_over_capacity": over_capacity,
    "services_without_node": without_node,
    "services_meddled_with": meddled_with,
    "services_mirrored": mirrored,
}
