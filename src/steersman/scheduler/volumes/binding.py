"""Binding and provisioning of a pod's volumes before the pod itself is bound (PreBind of VolumeBinding)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from steersman.machinery.built_in.volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    is_bound_to,
    is_fully_bound,
    reference_to,
)
from steersman.machinery.codec.serializer import to_plain
from steersman.scheduler.volumes.pod_volumes import Plan
from steersman.scheduler.volumes.store import VolumeStore

_PATIENCE: Final = 600.0
"""Seconds to wait until volumes are bound."""
_PERIOD: Final = 1.0
"""Seconds between two checks whether they are."""


class BindingFailed(Exception):
    """The volumes cannot be bound as planned; the pod has to be decided again."""


class VolumeBinder:
    """Assumes planned bindings, writes them, and waits until they are done."""

    def __init__(self, client: Client, store: VolumeStore) -> None:
        self._client = client
        self._store = store

    def assume(self, plan: Plan, node_name: str) -> Plan:
        """Assume what is planned. Return the plan with the objects as they will be."""
        assumed = Plan()
        for volume, claim in plan.bindings:
            new = _bound(volume, claim)
            self._store.assume_volume(new)
            assumed.bindings.append((new, claim))
        for claim in plan.provisions:
            annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
            new_claim = msgspec.structs.replace(claim, metadata=_with(claim.metadata, annotations))
            self._store.assume_claim(new_claim)
            assumed.provisions.append(new_claim)
        return assumed

    def revert(self, plan: Plan) -> None:
        """Undo `assume`."""
        for volume, _ in plan.bindings:
            self._store.restore_volume(volume.metadata.name)
        for claim in plan.provisions:
            self._store.restore_claim(claim.metadata.namespace, claim.metadata.name)

    async def bind(self, plan: Plan, node_name: str) -> None:
        """Write a plan and wait until it is done. Raises StatusError, Unreachable, BindingFailed."""
        for volume, _ in plan.bindings:
            metadata = volume.metadata
            change: dict[str, Any] = {
                "metadata": {"resourceVersion": metadata.resource_version},
                "spec": {"claimRef": to_plain(volume.spec.claim_ref)},
            }
            if BOUND_BY_CONTROLLER in metadata.annotations:
                change["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
            await self._client.patch(PERSISTENT_VOLUMES, metadata.name, "", change)
        for claim in plan.provisions:
            metadata = claim.metadata
            annotated = {"resourceVersion": metadata.resource_version, "annotations": {SELECTED_NODE: node_name}}
            await self._client.patch(
                PERSISTENT_VOLUME_CLAIMS, metadata.name, metadata.namespace, {"metadata": annotated}
            )
        loop = asyncio.get_running_loop()
        end = loop.time() + _PATIENCE
        while True:
            await asyncio.sleep(_PERIOD)
            if self._is_done(plan, node_name):
                return
            if loop.time() > end:
                raise BindingFailed("binding volumes: context deadline exceeded")

    def _is_done(self, plan: Plan, node_name: str) -> bool:
        """Return True if all claims have their volumes. Raises BindingFailed."""
        return all(self._is_bound(volume, claim) for volume, claim in plan.bindings) and all(
            self._is_made(claim, node_name) for claim in plan.provisions
        )

    def _is_bound(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        name = volume.metadata.name
        now = self._store.volumes.get("", name)
        if now is None:
            raise BindingFailed(f'binding volumes: failed to check binding: could not find persistentvolume "{name}"')
        if int(now.metadata.resource_version) <= int(volume.metadata.resource_version):
            return False
        if now.spec.claim_ref is None or not now.spec.claim_ref.uid:
            raise BindingFailed(f'binding volumes: ClaimRef got reset for pv "{name}"')
        found = self._store.claims.get(claim.metadata.namespace, claim.metadata.name)
        return found is not None and is_fully_bound(found)

    def _is_made(self, claim: PersistentVolumeClaim, node_name: str) -> bool:
        namespace, name = claim.metadata.namespace, claim.metadata.name
        now = self._store.claims.get(namespace, name)
        if now is None:
            what = f'failed to check provisioning pvc: could not find "{namespace}/{name}"'
            raise BindingFailed(f"binding volumes: {what}")
        if int(now.metadata.resource_version) <= int(claim.metadata.resource_version):
            return False
        if now.metadata.annotations.get(SELECTED_NODE) != node_name:
            raise BindingFailed(f'binding volumes: provisioning failed for PVC "{name}"')
        return is_fully_bound(now)


def _bound(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    annotations = dict(volume.metadata.annotations)
    if not is_bound_to(volume, claim):
        annotations[BOUND_BY_CONTROLLER] = "yes"
    spec = msgspec.structs.replace(volume.spec, claim_ref=reference_to(claim))
    return msgspec.structs.replace(volume, metadata=_with(volume.metadata, annotations), spec=spec)


def _with(metadata: ObjectMeta, annotations: dict[str, str]) -> ObjectMeta:
    return msgspec.structs.replace(metadata, annotations=annotations)
