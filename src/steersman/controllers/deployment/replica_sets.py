"""The new ReplicaSet of a Deployment, which has its present template: found or created (deployment sync.go)."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.apps.v1 import Deployment, DeploymentCondition, ReplicaSet, ReplicaSetSpec
from steersman.api.core.v1 import PodTemplateSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import is_already_exists, is_namespace_terminating
from steersman.client.events import Recorder, reference
from steersman.client.informer import Informer
from steersman.client.resources import DEPLOYMENTS, REPLICA_SETS
from steersman.controllers.deployment import annotation_values
from steersman.controllers.deployment.fence_posts import has_progress_deadline, new_replicas
from steersman.controllers.deployment.status import PROGRESSING, progressing, with_condition_changed
from steersman.controllers.workloads.controller_ref import is_controlled_by, new_controller_ref
from steersman.controllers.workloads.copies import mutable_copy, mutable_template_copy
from steersman.controllers.workloads.large_templates import offload_if_large
from steersman.controllers.workloads.template_hash import is_same_template, template_hash
from steersman.machinery.codec.serializer import encode
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values.conditions import find_condition
from steersman.work.bounded_cache import BoundedCache
from steersman.work.work_queue import TryLater

TEMPLATE_HASH: Final = "pod-template-hash"
_MAX_NAME: Final = 253
_MAX_CACHED: Final = 4096


class SameTemplate:
    """Cached comparison of a Deployment's and a ReplicaSet's pod templates, without the hash label."""

    def __init__(self) -> None:
        self._cached: BoundedCache[tuple[str, int, str, int], bool] = BoundedCache(_MAX_CACHED)

    async def __call__(self, deployment: Deployment, replica_set: ReplicaSet) -> bool:
        one, other = deployment.metadata, replica_set.metadata
        key = one.uid, one.generation, other.uid, other.generation
        cached = self._cached[key]
        if cached is None:
            templates = _without_hash(deployment.spec.template), _without_hash(replica_set.spec.template)
            cached = await offload_if_large(max(templates, key=_size), is_same_template, *templates)
            self._cached.keep(key, cached)
        return cached


def _size(template: PodTemplateSpec) -> int:
    return len(encode(template))


def _without_hash(template: PodTemplateSpec) -> PodTemplateSpec:
    labels = {key: value for key, value in template.metadata.labels.items() if key != TEMPLATE_HASH}
    return msgspec.structs.replace(template, metadata=msgspec.structs.replace(template.metadata, labels=labels))


class DeploymentState:
    """A Deployment (a copy that may be changed) and its ReplicaSets, oldest first: the `new` one and the `old` ones."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        informer: Informer[ReplicaSet],
        same: SameTemplate,
        deployment: Deployment,
        new: ReplicaSet | None,
        old: list[ReplicaSet],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._informer = informer
        self._same = same
        self.deployment = deployment
        self.new = new
        self.old = old

    @classmethod
    async def find(
        cls,
        client: Client,
        recorder: Recorder,
        informer: Informer[ReplicaSet],
        same: SameTemplate,
        deployment: Deployment,
        sets: list[ReplicaSet],
    ) -> DeploymentState:
        """Return the Deployment with its new ReplicaSet found among `sets`, which are sorted oldest first."""
        new = None
        for each in sets:
            if await same(deployment, each):
                new = each
                break
        return cls(client, recorder, informer, same, deployment, new, [each for each in sets if each is not new])

    @property
    def all_sets(self) -> list[ReplicaSet]:
        """Return all ReplicaSets, the new one last."""
        return [*self.old, self.new] if self.new else self.old

    def replace(self, changed: ReplicaSet) -> None:
        """Replace a ReplicaSet by its changed version."""
        if self.new is not None and self.new.metadata.uid == changed.metadata.uid:
            self.new = changed
        else:
            self.old = [changed if each.metadata.uid == changed.metadata.uid else each for each in self.old]

    async def write_conditions(self, *conditions: DeploymentCondition) -> None:
        """Update the Deployment's status with these conditions, and its annotations."""
        status = self.deployment.status
        for each in conditions:
            status.conditions = with_condition_changed(status.conditions, each)
        self.deployment = await self._client.update_status(DEPLOYMENTS, self.deployment)

    async def update_new(self) -> None:
        """Update the annotations of the new ReplicaSet, if it exists, and the revision of the Deployment."""
        if self.new is None:
            return
        deployment, changed = self.deployment, mutable_copy(self.new)
        seconds = deployment.spec.min_ready_seconds
        updated = annotation_values.update_annotations(
            deployment, changed, annotation_values.max_revision(self.old) + 1
        )
        if updated or changed.spec.min_ready_seconds != seconds:
            changed.spec.min_ready_seconds = seconds
            self.new = await self._client.update(REPLICA_SETS, changed)
            return
        new_conditions = []
        has_condition = find_condition(deployment.status.conditions, PROGRESSING) is not None
        if has_progress_deadline(deployment) and not has_condition:
            text = f'Found new replica set "{changed.metadata.name}"'
            new_conditions.append(progressing("True", "FoundNewReplicaSet", text))
        if self._set_revision(changed.metadata.annotations.get(annotation_values.REVISION, "")) or new_conditions:
            await self.write_conditions(*new_conditions)

    async def create_new(self) -> None:
        """Create the new ReplicaSet if it does not exist. Raises StatusError, and TryLater."""
        if self.new is not None:
            return
        deployment = self.deployment
        new = await self._new_replica_set()
        count = new_replicas(deployment, [*self.old, new], new)
        new.spec.replicas = count
        revision = annotation_values.max_revision(self.old) + 1
        annotation_values.update_annotations(deployment, new, revision)
        new.metadata.annotations.update(annotation_values.replicas_annotations(deployment))
        new_conditions = []
        try:
            created = await self._client.create(REPLICA_SETS, new)
        except StatusError as error:
            if not is_already_exists(error):
                await self._record_failure(new, error)
                raise
            created = await self._existing(new, error)
        else:
            name = created.metadata.name
            if count:
                self._record_event("Normal", "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {count}")
            if has_progress_deadline(deployment):
                new_conditions.append(progressing("True", "NewReplicaSetCreated", f'Created new replica set "{name}"'))
        self.new = created
        if self._set_revision(str(revision)) or new_conditions:
            await self.write_conditions(*new_conditions)

    async def _new_replica_set(self) -> ReplicaSet:
        """Return an object for the new ReplicaSet, named by the template's hash, with 0 replicas."""
        deployment = self.deployment
        template = mutable_template_copy(deployment.spec.template)
        hash_ = await offload_if_large(template, template_hash, template, deployment.status.collision_count)
        template.metadata.labels = {**template.metadata.labels, TEMPLATE_HASH: hash_}
        desired = deployment.spec.selector
        assert desired is not None
        selector = msgspec.structs.replace(desired, match_labels={**desired.match_labels, TEMPLATE_HASH: hash_})
        name = f"{deployment.metadata.name[: _MAX_NAME - 1 - len(hash_)]}-{hash_}"
        return ReplicaSet(
            metadata=ObjectMeta(
                name=name,
                namespace=deployment.metadata.namespace,
                labels=template.metadata.labels,
                annotations={},
                owner_references=[new_controller_ref(DEPLOYMENTS, deployment)],
            ),
            spec=ReplicaSetSpec(
                replicas=0, min_ready_seconds=deployment.spec.min_ready_seconds, selector=selector, template=template
            ),
        )

    async def _existing(self, new: ReplicaSet, error: StatusError) -> ReplicaSet:
        """Return the existing ReplicaSet of that name if it is the Deployment's.

        Any other one is a hash collision: it is counted, and `error` is raised.
        """
        existing = self._informer.get(new.metadata.namespace, new.metadata.name)
        if existing is None:
            raise TryLater(f'replicaset.apps "{new.metadata.name}" not found') from error
        if is_controlled_by(existing, self.deployment) and await self._same(self.deployment, existing):
            return existing
        status = self.deployment.status
        status.collision_count = (status.collision_count or 0) + 1
        await self._client.update_status(DEPLOYMENTS, self.deployment)
        raise error

    async def _record_failure(self, new: ReplicaSet, error: StatusError) -> None:
        if is_namespace_terminating(error):
            return
        text = f'Failed to create new replica set "{new.metadata.name}": {error}'
        if has_progress_deadline(self.deployment):
            await self.write_conditions(progressing("False", "ReplicaSetCreateError", text))
        self._record_event("Warning", "ReplicaSetCreateError", text)

    def _set_revision(self, revision: str) -> bool:
        own = self.deployment.metadata.annotations
        if own.get(annotation_values.REVISION) == revision:
            return False
        self.deployment.metadata.annotations = {**own, annotation_values.REVISION: revision}
        return True

    def _record_event(self, type_: str, reason: str, message: str) -> None:
        self._recorder.event(reference(DEPLOYMENTS, self.deployment), type_, reason, message)
