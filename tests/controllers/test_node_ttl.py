"""Tests of the kubelets' cache lifetime."""

from __future__ import annotations

from steersman.api.core.v1 import Node
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.resources import NODES
from steersman.controllers.node_ttl import ANNOTATION, STEPS, TTLController, next_step
from tests.controllers.waiting import Run, eventually


async def test_nodes_are_told(run: Run) -> None:
    client = await run(TTLController)
    for name, said in (("a", {}), ("b", {ANNOTATION: "15", "other": "stays"})):
        await client.create(NODES, Node(metadata=ObjectMeta(name=name, annotations=said)))

    async def are_annotated() -> bool:
        found = {each.metadata.name: each.metadata.annotations for each in (await client.list(NODES)).items}
        return found == {"a": {ANNOTATION: "0"}, "b": {ANNOTATION: "0", "other": "stays"}}

    await eventually(are_annotated)


def test_larger_clusters_are_told_more_and_a_node_more_or_less_does_not_matter() -> None:
    step, are_annotated = 0, {}
    for count in range(2001):
        step = next_step(step, count)
        are_annotated[count] = STEPS[step][2]
    assert [are_annotated[each] for each in (100, 101, 500, 501, 1000, 1001, 2000)] == [0, 15, 15, 30, 30, 60, 60]
    step = next_step(step, 2001)
    for count in range(2001, -1, -1):
        step = next_step(step, count)
        are_annotated[count] = STEPS[step][2]
    assert [are_annotated[each] for each in (1800, 1799, 900, 899, 450, 449, 90, 89)] == [
        300,
        60,
        60,
        30,
        30,
        15,
        15,
        0,
    ]
