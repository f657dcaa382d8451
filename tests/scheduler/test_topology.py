"""Pods with affinity, anti-affinity and spread constraints."""

from __future__ import annotations

from typing import Any

from tests.scheduler.scene import Scene

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def term(key: str, **labels: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def required(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def constraint(key: str, **more: Any) -> dict[str, Any]:
    wanted = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return wanted | {"labelSelector": {"matchLabels": {"app": "x"}}} | more


async def zones(scene: Scene, **nodes: str) -> None:
    for name, zone in nodes.items():
        await scene.node(name, labels={ZONE: zone})


async def test_pods_that_keep_away_from_each_other_get_different_nodes(scene: Scene) -> None:
    await zones(scene, a="1", b="2")
    apart = required("podAntiAffinity", term(HOSTNAME, app="x"))
    for name in ("p", "q", "r"):
        await scene.pod(name, labels={"app": "x"}, **apart)
    assert {await scene.wait_for_node("p"), await scene.wait_for_node("q")} == {"a", "b"}
    assert "2 node(s) didn't match pod anti-affinity rules" in (await scene.wait_for_refusal("r")).message
    await scene.delete("p")
    assert await scene.wait_for_node("r")


async def test_a_pod_keeps_others_away(scene: Scene) -> None:
    await zones(scene, a="1")
    await scene.pod("shy", **required("podAntiAffinity", term(ZONE, app="x")))
    await scene.wait_for_node("shy")
    await scene.pod("p", labels={"app": "x"})
    assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in (await scene.wait_for_refusal("p")).message
    await scene.delete("shy")
    assert await scene.wait_for_node("p") == "a"


async def test_a_pod_follows_another_into_its_zone(scene: Scene) -> None:
    await zones(scene, a="1", b="2")
    await scene.pod("follower", **required("podAffinity", term(ZONE, app="x")))
    assert "2 node(s) didn't match pod affinity rules" in (await scene.wait_for_refusal("follower")).message
    await scene.pod("leader", labels={"app": "x"}, nodeSelector={ZONE: "2"})
    assert await scene.wait_for_node("leader") == "b"
    assert await scene.wait_for_node("follower") == "b"


async def test_the_first_of_pods_that_want_to_be_together_goes_anywhere(scene: Scene) -> None:
    await zones(scene, a="1", b="2")
    together = required("podAffinity", term(ZONE, app="x"))
    await scene.pod("p", labels={"app": "x"}, **together)
    first = await scene.wait_for_node("p")
    await scene.pod("q", labels={"app": "x"}, **together)
    assert await scene.wait_for_node("q") == first


async def test_pods_are_spread_as_they_ask(scene: Scene) -> None:
    await zones(scene, a="1", b="2")
    spread = {"topologySpreadConstraints": [constraint(ZONE)], "labels": {"app": "x"}}
    for name in ("p", "q"):
        await scene.pod(name, **spread)
    assert {await scene.wait_for_node("p"), await scene.wait_for_node("q")} == {"a", "b"}
    only_a = {"nodeSelector": {ZONE: "1"}}
    await scene.pod("r", **spread)
    await scene.wait_for_node("r")
    skewed = [constraint(ZONE, nodeAffinityPolicy="Ignore")]
    where = (await scene.get("r")).spec.node_name
    full = {"nodeSelector": {HOSTNAME: where}} if where else only_a
    await scene.pod("s", labels={"app": "x"}, topologySpreadConstraints=skewed, **full)
    assert (await scene.wait_for_refusal("s")).message.startswith(
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) didn't match pod topology spread constraints."
    )


async def test_a_node_without_the_label_does_not_do(scene: Scene) -> None:
    await scene.node("a")
    await scene.pod("p", labels={"app": "x"}, topologySpreadConstraints=[constraint(ZONE)])
    assert (await scene.wait_for_refusal("p")).message.startswith(
        "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label)."
    )
