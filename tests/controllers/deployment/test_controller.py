"""Tests of the Deployment controller."""

from __future__ import annotations

from typing import Any

from steersman.api.apps.v1 import Deployment, DeploymentSpec, DeploymentStrategy, ReplicaSet, RollingUpdateDeployment
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.resources import DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS
from steersman.controllers.deployment import annotation_values
from steersman.controllers.deployment.controller import DeploymentController
from steersman.controllers.replica_set import ReplicaSetController
from tests.controllers.kubelet import LABELS, live, pods_of, run_pods, template
from tests.controllers.waiting import Run, eventually


async def make(client: Client, replicas: int = 3, **spec: Any) -> Deployment:
    given = DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=LABELS), template=template(), **spec)
    return await client.create(DEPLOYMENTS, Deployment(metadata=ObjectMeta(name="d", namespace="default"), spec=given))


async def get_deployment(client: Client) -> Deployment:
    return await client.get(DEPLOYMENTS, "d", "default")


async def patch(client: Client, spec: dict[str, Any], **metadata: Any) -> None:
    change = {"spec": spec, "metadata": metadata}
    await client.patch(DEPLOYMENTS, "d", "default", change, media=STRATEGIC_MERGE_PATCH)


async def change_image(client: Client, image: str) -> None:
    await patch(client, {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}})


async def sets_by_image(client: Client) -> dict[str, ReplicaSet]:
    """Return the ReplicaSets by image."""
    found = (await client.list(REPLICA_SETS, "default")).items
    return {(each.spec.template.spec.containers or [])[0].image: each for each in found}


async def sizes(client: Client) -> dict[str, int | None]:
    return {image: each.spec.replicas for image, each in (await sets_by_image(client)).items()}


async def conditions(client: Client) -> dict[str, tuple[str, str, str]]:
    return {
        each.type: (each.status, each.reason, each.message) for each in (await get_deployment(client)).status.conditions
    }


async def is_complete(client: Client) -> bool:
    deployment = await get_deployment(client)
    wanted = deployment.spec.replicas
    status = deployment.status
    return (
        status.observed_generation == deployment.metadata.generation
        and wanted == status.replicas == status.updated_replicas == status.available_replicas
        and (await conditions(client)).get("Progressing", ("", "", ""))[1] == "NewReplicaSetAvailable"
    )


async def test_a_template_gets_a_replica_set_named_by_its_hash(run: Run) -> None:
    client = await run(DeploymentController, ReplicaSetController)
    made = await make(client)
    await live(client, lambda: is_complete(client))
    (found,) = (await sets_by_image(client)).values()
    hash_ = found.metadata.labels["pod-template-hash"]
    assert found.metadata.name == f"d-{hash_}" == "d-868fcd64f9"
    assert found.spec.selector == LabelSelector(match_labels={**LABELS, "pod-template-hash": hash_})
    assert [each.uid for each in found.metadata.owner_references] == [made.metadata.uid]
    assert found.metadata.annotations == {
        annotation_values.REVISION: "1",
        annotation_values.DESIRED_REPLICAS: "3",
        annotation_values.MAX_REPLICAS: "4",
    }
    assert (await get_deployment(client)).metadata.annotations[annotation_values.REVISION] == "1"
    assert await conditions(client) == {
        "Available": ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        "Progressing": ("True", "NewReplicaSetAvailable", 'ReplicaSet "d-868fcd64f9" has successfully progressed.'),
    }


async def test_a_rolling_update_keeps_to_its_fence_posts(run: Run) -> None:
    client = await run(DeploymentController, ReplicaSetController)
    rolling = RollingUpdateDeployment(max_surge=1, max_unavailable=1)
    await make(client, 4, strategy=DeploymentStrategy(type="RollingUpdate", rolling_update=rolling))
    await live(client, lambda: is_complete(client))
    await change_image(client, "j")
    seen: set[int] = set()

    async def watched() -> bool:
        found = await sizes(client)
        seen.add(sum(size or 0 for size in found.values()))
        ready = sum(each.status.available_replicas for each in (await sets_by_image(client)).values())
        assert ready >= 3
        return "j" in found and await is_complete(client)

    await live(client, watched)
    assert await sizes(client) == {"i": 0, "j": 4}
    assert max(seen) <= 5
    assert (await get_deployment(client)).metadata.annotations[annotation_values.REVISION] == "2"


async def test_a_template_that_was_there_before_is_gone_back_to(run: Run) -> None:
    client = await run(DeploymentController, ReplicaSetController)
    await make(client, 1)
    await live(client, lambda: is_complete(client))
    for image in ("j", "i"):
        await change_image(client, image)
        await live(client, lambda: is_complete(client))
    found = await sets_by_image(client)
    assert len(found) == 2
    assert found["i"].metadata.annotations[annotation_values.REVISION] == "3"
    assert found["i"].metadata.annotations[annotation_values.REVISION_HISTORY] == "1"


async def test_recreate_lets_no_old_and_new_pods_run_side_by_side(run: Run) -> None:
    client = await run(DeploymentController, ReplicaSetController)
    await make(client, 2, strategy=DeploymentStrategy(type="Recreate"))
    await live(client, lambda: is_complete(client))
    await change_image(client, "j")

    async def watched() -> bool:
        images = {(pod.spec.containers or [])[0].image for pod in (await client.list(PODS, "default")).items}
        assert len(images) <= 1
        return images == {"j"} and await is_complete(client)

    await live(client, watched)
    assert await sizes(client) == {"i": 0, "j": 2}


async def test_a_paused_one_is_scaled_and_not_rolled(run: Run) -> None:
    client = await run(DeploymentController, ReplicaSetController)
    await make(client, 1)
    await live(client, lambda: is_complete(client))
    await patch(client, {"paused": True})

    async def paused() -> bool:
        return (await conditions(client))["Progressing"] == ("Unknown", "DeploymentPaused", "Deployment is paused")

    await eventually(paused)
    await change_image(client, "j")
    await patch(client, {"replicas": 2})

    async def scaled() -> bool:
        return await sizes(client) == {"i": 2}

    await eventually(scaled)
    await patch(client, {"paused": False})
    await live(client, lambda: is_complete(client))
    assert await sizes(client) == {"i": 0, "j": 2}


async def test_a_scale_in_the_middle_of_a_rollout_is_shared(run: Run) -> None:
    client = await run(DeploymentController, ReplicaSetController)
    rolling = RollingUpdateDeployment(max_surge=3, max_unavailable=2)
    await make(client, 10, strategy=DeploymentStrategy(type="RollingUpdate", rolling_update=rolling))
    await live(client, lambda: is_complete(client))
    await change_image(client, "j")

    async def rolling_sizes(wanted: dict[str, int]) -> bool:
        return await sizes(client) == wanted

    await eventually(lambda: rolling_sizes({"i": 8, "j": 5}))
    await patch(client, {"replicas": 15})
    await eventually(lambda: rolling_sizes({"i": 11, "j": 7}))


async def test_no_progress_for_too_long_is_told_of(run: Run) -> None:
    client = await run(DeploymentController, ReplicaSetController)
    await make(client, 1, progress_deadline_seconds=1)

    async def timed_out() -> bool:
        is_reported = ("False", "ProgressDeadlineExceeded", 'ReplicaSet "d-868fcd64f9" has timed out progressing.')
        return (await conditions(client)).get("Progressing") == is_reported

    await eventually(timed_out)
    await run_pods(client)
    await eventually(lambda: is_complete(client))


async def test_old_replica_sets_go_when_the_history_is_full(run: Run) -> None:
    client = await run(DeploymentController, ReplicaSetController)
    await make(client, 1, revision_history_limit=1)
    await live(client, lambda: is_complete(client))
    for image in ("j", "k"):
        await change_image(client, image)
        await live(client, lambda: is_complete(client))

    async def are_cleaned_up() -> bool:
        return set(await sizes(client)) == {"j", "k"}

    await eventually(are_cleaned_up)


async def test_the_old_apis_rollback_brings_a_template_back(run: Run) -> None:
    client = await run(DeploymentController, ReplicaSetController)
    await make(client, 1)
    await live(client, lambda: is_complete(client))
    await change_image(client, "j")
    await live(client, lambda: is_complete(client))
    await patch(client, {}, annotations={annotation_values.ROLLBACK_TO: "0"})

    async def back() -> bool:
        return await sizes(client) == {"i": 1, "j": 0} and await is_complete(client)

    await live(client, back)
    assert annotation_values.ROLLBACK_TO not in (await get_deployment(client)).metadata.annotations

    async def is_reported() -> bool:
        found = (await client.list(EVENTS, "default")).items
        return 'Rolled back deployment "d" to revision 1' in [each.message for each in found]

    await eventually(is_reported)


async def test_a_name_that_another_has_taken_makes_another_hash(run: Run) -> None:
    client = await run(DeploymentController, ReplicaSetController)
    other = LabelSelector(match_labels={"x": "y"})
    taken = ReplicaSet(metadata=ObjectMeta(name="d-868fcd64f9", namespace="default"))
    taken.spec.replicas, taken.spec.selector, taken.spec.template = 0, other, template("other")
    taken.spec.template.metadata.labels = {"x": "y"}
    await client.create(REPLICA_SETS, taken)
    await make(client, 1)
    await live(client, lambda: is_complete(client))
    assert (await get_deployment(client)).status.collision_count == 1
    assert (await sets_by_image(client))["i"].metadata.name != "d-868fcd64f9"


async def test_replica_sets_are_adopted_by_their_labels(run: Run) -> None:
    client = await run(DeploymentController)
    own = ReplicaSet(metadata=ObjectMeta(name="own", namespace="default", labels=LABELS))
    own.spec.replicas, own.spec.selector, own.spec.template = 1, LabelSelector(match_labels=LABELS), template()
    await client.create(REPLICA_SETS, own)
    made = await make(client, 2)

    async def adopted() -> bool:
        (found,) = (await client.list(REPLICA_SETS, "default")).items
        owners = [each.uid for each in found.metadata.owner_references]
        return owners == [made.metadata.uid] and found.spec.replicas == 2

    await eventually(adopted)
    assert await pods_of(client) == []
