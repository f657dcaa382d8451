"""Tests of ReplicationControllers, which share their code with ReplicaSets."""

from __future__ import annotations

from steersman.api.core.v1 import ReplicationController, ReplicationControllerSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.resources import REPLICATION_CONTROLLERS
from steersman.controllers.replication_controller import ReplicationControllerController
from tests.controllers.kubelet import LABELS, pods_of, run_pods, template
from tests.controllers.waiting import Run, eventually


async def test_its_pods_are_made_and_counted(run: Run) -> None:
    client = await run(ReplicationControllerController)
    spec = ReplicationControllerSpec(replicas=2, selector=LABELS, template=template())
    metadata = ObjectMeta(name="rc", namespace="default")
    await client.create(REPLICATION_CONTROLLERS, ReplicationController(metadata=metadata, spec=spec))

    async def are_created() -> bool:
        return len(await pods_of(client)) == 2

    await eventually(are_created)
    await run_pods(client)

    async def counted() -> bool:
        status = (await client.get(REPLICATION_CONTROLLERS, "rc", "default")).status
        return (status.replicas, status.ready_replicas, status.fully_labeled_replicas) == (2, 2, 2)

    await eventually(counted)
    (reference,) = (await pods_of(client))[0].metadata.owner_references
    assert (reference.kind, reference.api_version, reference.name) == ("ReplicationController", "v1", "rc")
