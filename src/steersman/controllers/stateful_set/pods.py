"""Writes of StatefulSets' pods and claims, with events about them (stateful_pod_control.go)."""

from __future__ import annotations

from steersman.api.apps.v1 import StatefulSet
from steersman.api.core.v1 import PersistentVolumeClaim, Pod
from steersman.client.client import Client
from steersman.client.errors import is_already_exists, is_conflict, is_not_found
from steersman.client.events import Recorder, reference
from steersman.client.informer import Informer, Key, key_of
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from steersman.controllers.stateful_set import claims
from steersman.controllers.stateful_set.identity import (
    claim_name,
    claims_of,
    has_identity,
    has_storage,
    ordinal_of,
    put_identity,
    put_storage,
)
from steersman.controllers.workloads.expectations import Expectations
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import TryLater

_TRIES = 4


class StatefulPods:
    """Creates, updates and deletes the pods of all StatefulSets, and their claims."""

    def __init__(self, client: Client, recorder: Recorder, claims: Informer[PersistentVolumeClaim]) -> None:
        self._client = client
        self._recorder = recorder
        self._claims = claims
        self.expected: Expectations[Key] = Expectations()

    async def create(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Create a pod after its claims. Raises StatusError, Unreachable, TryLater."""
        try:
            await self.create_claims(stateful_set, pod)
        except (StatusError, TryLater) as error:
            self._record_event("Create", stateful_set, pod, error)
            raise
        key = key_of(stateful_set)
        self.expected.add(key, creations=1)
        try:
            created = await self._client.create(PODS, pod)
        except StatusError as error:
            self.expected.observe_creation(key)
            if not is_already_exists(error):
                self._record_event("Create", stateful_set, pod, error)
            raise
        await self._put_owners(stateful_set, created)
        self._record_event("Create", stateful_set, pod)

    async def delete(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Delete a pod. Raises StatusError, Unreachable."""
        key, uid = key_of(stateful_set), pod.metadata.uid
        self.expected.add(key, deletions=(uid,))
        try:
            await self._client.delete(PODS, pod.metadata.name, pod.metadata.namespace)
        except StatusError as error:
            self.expected.observe_deletion(key, uid)
            if not is_not_found(error):
                self._record_event("Delete", stateful_set, pod, error)
                raise
        self._record_event("Delete", stateful_set, pod)

    async def restore(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Restore the labels and volumes of a pod, and the owners of its claims, if any of them is wrong."""
        if has_identity(pod) and has_storage(stateful_set, pod) and self.owners_are_right(stateful_set, pod):
            return
        for attempt in range(_TRIES):
            changed = deep_copy(pod)
            put_identity(stateful_set, changed)
            if not has_storage(stateful_set, changed):
                put_storage(stateful_set, changed)
                await self.create_claims(stateful_set, changed)
            await self._put_owners(stateful_set, changed)
            try:
                await self._client.update(PODS, changed)
            except StatusError as error:
                if not is_conflict(error) or attempt == _TRIES - 1:
                    self._record_event("Update", stateful_set, pod, error)
                    raise
                pod = await self._client.get(PODS, pod.metadata.name, pod.metadata.namespace)
            else:
                self._record_event("Update", stateful_set, pod)
                return

    def owners_are_right(self, stateful_set: StatefulSet, pod: Pod) -> bool:
        """Return True if the claims of a pod have the owners that the policy requires."""
        return all(claims.is_owner_up_to_date(each, stateful_set, pod) for each in self._claims_of(stateful_set, pod))

    async def put_owners(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Set the owners of a pod's claims that the policy requires, if they are wrong."""
        if not self.owners_are_right(stateful_set, pod):
            await self._put_owners(stateful_set, pod)

    def has_stale_claims(self, stateful_set: StatefulSet, pod: Pod) -> bool:
        """Return True if claims of the pod are still to be deleted with a former pod of that name."""
        if not claims.policy_of(stateful_set)[1]:
            return False
        return any(claims.is_stale(each, PODS, pod) for each in self._claims_of(stateful_set, pod))

    def _claims_of(self, stateful_set: StatefulSet, pod: Pod) -> list[PersistentVolumeClaim]:
        namespace, ordinal = stateful_set.metadata.namespace, ordinal_of(pod)
        names = (claim_name(stateful_set, each, ordinal) for each in stateful_set.spec.volume_claim_templates)
        return [each for name in names if (each := self._claims.get(namespace, name)) is not None]

    async def _put_owners(self, stateful_set: StatefulSet, pod: Pod) -> None:
        for claim in self._claims_of(stateful_set, pod):
            if claims.has_unexpected_controller(claim, stateful_set, pod):
                text = (
                    f"PersistentVolumeClaim {claim.metadata.name} has a conflicting OwnerReference that acts as a "
                    "manging controller, the retention policy is ignored for this claim"
                )
                self._recorder.event(reference(STATEFUL_SETS, stateful_set), "Warning", "ConflictingController", text)
            if not claims.is_owner_up_to_date(claim, stateful_set, pod):
                changed = deep_copy(claim)
                claims.put_owners(changed, stateful_set, pod)
                await self._client.update(PERSISTENT_VOLUME_CLAIMS, changed)

    async def create_missing(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Create the missing claims of a pending pod, and set the owners of all its claims."""
        await self.create_claims(stateful_set, pod)
        await self.put_owners(stateful_set, pod)

    async def create_claims(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Create the missing claims of a pod. Raises TryLater after all have been tried."""
        failed: list[str] = []
        for claim in claims_of(stateful_set, ordinal_of(pod)).values():
            name = claim.metadata.name
            cached = self._claims.get(claim.metadata.namespace, name)
            if cached is not None:
                if cached.metadata.deletion_timestamp:
                    failed.append(f"pvc {name} is being deleted")
                continue
            where = f"Pod {pod.metadata.name} in StatefulSet {stateful_set.metadata.name}"
            about = reference(STATEFUL_SETS, stateful_set)
            try:
                await self._client.create(PERSISTENT_VOLUME_CLAIMS, claim)
            except StatusError as error:
                if not is_already_exists(error):  # an existing claim is not in the informer yet
                    failed.append(f"failed to create PVC {name}: {error}")
                    text = f"Create Claim {name} for {where} failed error: {error}"
                    self._recorder.event(about, "Warning", "FailedCreate", text)
            else:
                self._recorder.event(about, "Normal", "SuccessfulCreate", f"Create Claim {name} {where} success")
        if failed:
            raise TryLater(failed[0] if len(failed) == 1 else f"[{', '.join(failed)}]")

    def _record_event(self, verb: str, stateful_set: StatefulSet, pod: Pod, error: Exception | None = None) -> None:
        about = reference(STATEFUL_SETS, stateful_set)
        text = f"{verb} Pod {pod.metadata.name} in StatefulSet {stateful_set.metadata.name}"
        if error is None:
            self._recorder.event(about, "Normal", f"Successful{verb}", f"{text} successful")
        else:
            self._recorder.event(about, "Warning", f"Failed{verb}", f"{text} failed error: {error}")
