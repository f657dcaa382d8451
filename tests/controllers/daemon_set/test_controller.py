"""Tests of the DaemonSet controller."""

from __future__ import annotations

from functools import partial
from typing import Any

from steersman.api.apps.v1 import (
    ControllerRevision,
    DaemonSet,
    DaemonSetSpec,
    DaemonSetUpdateStrategy,
    RollingUpdateDaemonSet,
)
from steersman.api.core.v1 import Node
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.resources import CONTROLLER_REVISIONS, DAEMON_SETS, EVENTS, NODES, PODS
from steersman.controllers.daemon_set.controller import DaemonSetController
from steersman.controllers.daemon_set.nodes import target_node
from tests.controllers.kubelet import LABELS, end_pods, live, pods_of, run_pods, template
from tests.controllers.waiting import Run, eventually


async def add_node(client: Client, name: str, **labels: str) -> None:
    await client.create(NODES, Node(metadata=ObjectMeta(name=name, labels=labels)))
    await client.patch(NODES, name, "", {"spec": {"taints": None}})


async def make(client: Client, **spec: Any) -> DaemonSet:
    spec.setdefault("template", template())
    given = DaemonSetSpec(selector=LabelSelector(match_labels=LABELS), **spec)
    return await client.create(DAEMON_SETS, DaemonSet(metadata=ObjectMeta(name="ds", namespace="default"), spec=given))


async def images_by_node(client: Client) -> dict[str | None, str]:
    """Return the images of the pods, by node."""
    return {target_node(pod): (pod.spec.containers or [])[0].image for pod in await pods_of(client)}


async def is_rolled_out(client: Client, **wanted: str) -> bool:
    status = (await client.get(DAEMON_SETS, "ds", "default")).status
    ready = status.number_ready == status.desired_number_scheduled == len(wanted)
    return await images_by_node(client) == wanted and ready and status.updated_number_scheduled == len(wanted)


async def revisions(client: Client) -> list[ControllerRevision]:
    found = (await client.list(CONTROLLER_REVISIONS, "default")).items
    return sorted(found, key=lambda each: each.revision)


async def change_image(client: Client, image: str) -> None:
    change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
    await client.patch(DAEMON_SETS, "ds", "default", change, media=STRATEGIC_MERGE_PATCH)


async def test_each_node_that_suits_gets_a_pod_and_keeps_it(run: Run) -> None:
    client = await run(DaemonSetController)
    await add_node(client, "a", zone="x")
    await make(client, template=template(node_selector={"zone": "x"}))
    await live(client, lambda: is_rolled_out(client, a="i"))
    await add_node(client, "b", zone="x")
    await add_node(client, "c", zone="y")
    await live(client, lambda: is_rolled_out(client, a="i", b="i"))
    await client.patch(NODES, "a", "", {"metadata": {"labels": {"zone": "y"}}})
    await live(client, lambda: is_rolled_out(client, b="i"))
    (pod,) = await pods_of(client)
    await client.delete(PODS, pod.metadata.name, "default")
    await live(client, lambda: is_rolled_out(client, b="i"))


async def test_a_node_that_drives_pods_out_loses_its_own(run: Run) -> None:
    client = await run(DaemonSetController)
    await add_node(client, "a")
    await make(client)
    await live(client, lambda: is_rolled_out(client, a="i"))
    await client.patch(NODES, "a", "", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
    await live(client, lambda: is_rolled_out(client))


async def test_a_new_template_replaces_one_pod_after_the_other(run: Run) -> None:
    client = await run(DaemonSetController)
    for name in ("a", "b", "c"):
        await add_node(client, name)
    await make(client)
    await live(client, lambda: is_rolled_out(client, a="i", b="i", c="i"))
    await change_image(client, "j")

    async def watched() -> bool:
        assert len(await pods_of(client)) >= 2
        return await is_rolled_out(client, a="j", b="j", c="j")

    await live(client, watched)
    first, second = await revisions(client)
    assert (first.revision, second.revision) == (1, 2)
    assert second.metadata.name == f"ds-{second.metadata.labels['controller-revision-hash']}"
    assert {pod.metadata.labels["controller-revision-hash"] for pod in await pods_of(client)} == {
        second.metadata.labels["controller-revision-hash"]
    }
    await change_image(client, "i")
    await live(client, lambda: is_rolled_out(client, a="i", b="i", c="i"))
    assert [each.revision for each in await revisions(client)] == [2, 3]


async def test_with_surge_no_node_is_without_a_pod(run: Run) -> None:
    client = await run(DaemonSetController)
    for name in ("a", "b"):
        await add_node(client, name)
    rolling = RollingUpdateDaemonSet(max_surge=1, max_unavailable=0)
    await make(client, update_strategy=DaemonSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling))
    await live(client, lambda: is_rolled_out(client, a="i", b="i"))
    await change_image(client, "j")

    async def watched() -> bool:
        pods = await pods_of(client)
        ready = {target_node(pod) for pod in pods if any(each.status == "True" for each in pod.status.conditions)}
        assert ready == {"a", "b"}
        return await is_rolled_out(client, a="j", b="j") and len(pods) == 2

    await live(client, watched)


async def test_on_delete_only_what_is_deleted_is_replaced(run: Run) -> None:
    client = await run(DaemonSetController)
    await add_node(client, "a")
    await make(client, update_strategy=DaemonSetUpdateStrategy(type="OnDelete"))
    await live(client, lambda: is_rolled_out(client, a="i"))
    await change_image(client, "j")

    async def looked() -> bool:
        daemon_set = await client.get(DAEMON_SETS, "ds", "default")
        return daemon_set.status.observed_generation == daemon_set.metadata.generation == 2

    await eventually(looked)
    assert await images_by_node(client) == {"a": "i"}
    (pod,) = await pods_of(client)
    await client.delete(PODS, pod.metadata.name, "default")
    await live(client, lambda: is_rolled_out(client, a="j"))


async def test_a_pod_that_failed_is_replaced_and_told_of(run: Run) -> None:
    client = await run(DaemonSetController)
    await add_node(client, "a")
    await make(client)
    await live(client, lambda: is_rolled_out(client, a="i"))
    (pod,) = await pods_of(client)
    await run_pods(client, phase="Failed", ready=False)

    async def replaced() -> bool:
        await end_pods(client)
        return [each.metadata.uid for each in await pods_of(client)] not in ([], [pod.metadata.uid])

    await eventually(replaced)

    async def messages() -> list[str]:
        found = (await client.list(EVENTS, "default")).items
        return [each.message for each in found if each.reason == "FailedDaemonPod"]

    name = pod.metadata.name
    expected = f"Found failed daemon pod default/{name} on node a, will try to kill it"
    assert await eventually(messages) == [expected]


async def test_old_revisions_go_when_the_history_is_full(run: Run) -> None:
    client = await run(DaemonSetController)
    await add_node(client, "a")
    await make(client, revision_history_limit=1)
    await live(client, lambda: is_rolled_out(client, a="i"))
    for image in ("j", "k"):
        await change_image(client, image)
        await live(client, partial(is_rolled_out, client, a=image))

    async def is_cleaned_up() -> bool:
        return [each.revision for each in await revisions(client)] == [2, 3]

    await eventually(is_cleaned_up)
