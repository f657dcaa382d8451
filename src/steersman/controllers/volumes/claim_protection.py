"""Controller that keeps deleted claims while pods use them (pkg/controller/volume/pvcprotection)."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.api.core.v1 import PersistentVolumeClaim, Pod
from steersman.client.errors import ignoring, is_not_found
from steersman.client.informer import key_of
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.volumes.pods import add_claim_index, pods_of_claim
from steersman.controllers.volumes.protection import (
    is_deletion_candidate,
    needs_finalizer,
    needs_processing,
    with_finalizer,
    without_finalizer,
)
from steersman.machinery.built_in.volumes import (
    CLAIM_PROTECTION,
    claim_name,
    claim_names,
    is_made_for,
    is_terminated,
)


class ClaimProtection(Controller[str]):
    """Adds and removes the protection finalizer. A key is the name of a namespace.

    Before finalizers are removed, the pods of the namespace are listed once for all its claims.
    """

    name = "persistentvolumeclaim-protection-controller"
    account = "pvc-protection-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._claims = self.informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self._pods = self.informers.for_resource(PODS)
        add_claim_index(self._pods)
        self._waiting: dict[str, dict[str, None]] = {}
        """Names of the claims to process, by namespace."""
        self._claims.on_change(self._claim_changed)
        self._pods.on_change(self._pod_changed)

    def _enqueue(self, namespace: str, name: str) -> None:
        self._waiting.setdefault(namespace, {})[name] = None
        self.queue.add(namespace)

    def _claim_changed(self, _: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is not None and needs_processing(new, CLAIM_PROTECTION):
            self._enqueue(*key_of(new))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or (new is not None and new.spec.node_name and not is_terminated(new)):
            return
        for name in claim_names(pod):
            claim = self._claims.get(pod.metadata.namespace, name)
            if claim is not None and needs_processing(claim, CLAIM_PROTECTION):
                self._enqueue(pod.metadata.namespace, name)

    async def sync(self, key: str) -> None:
        names = self._waiting.pop(key, {})
        pods: list[Pod] | None = None
        try:
            for name in list(names):
                claim = self._claims.get(key, name)
                if claim is not None and needs_finalizer(claim, CLAIM_PROTECTION):
                    await self.client.update(PERSISTENT_VOLUME_CLAIMS, with_finalizer(claim, CLAIM_PROTECTION))
                elif claim is not None and self._seems_unused(claim):
                    if pods is None:
                        pods = [pod async for pod in self.client.iterate(PODS, key)]
                    if not _is_used(claim, pods):
                        await self._remove_finalizer(claim)
                del names[name]
        finally:
            if names:  # after an error: keep the rest for the retry
                self._waiting[key] = {**names, **self._waiting.get(key, {})}

    def _seems_unused(self, claim: PersistentVolumeClaim) -> bool:
        """Return True if a deleted claim is used by no pod of the informer."""
        return is_deletion_candidate(claim, CLAIM_PROTECTION) and not _is_used(
            claim, pods_of_claim(self._pods, key_of(claim))
        )

    async def _remove_finalizer(self, claim: PersistentVolumeClaim) -> None:
        with ignoring(is_not_found):
            await self.client.update(PERSISTENT_VOLUME_CLAIMS, without_finalizer(claim, CLAIM_PROTECTION))


def _is_used(claim: PersistentVolumeClaim, pods: Iterable[Pod]) -> bool:
    """Return True if one of these pods has a node and uses the claim."""
    return any(pod.spec.node_name and _uses(pod, claim) for pod in pods)


def _uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    shut_down = pod.metadata.deletion_timestamp is not None and pod.metadata.deletion_grace_period_seconds == 0
    for volume in pod.spec.volumes:
        if claim_name(pod, volume) != claim.metadata.name:
            continue
        if volume.persistent_volume_claim is not None or (not shut_down and is_made_for(claim, pod)):
            return True
    return False
