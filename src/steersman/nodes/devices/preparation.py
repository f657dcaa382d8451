"""Preparation of the resource claims of pods, by the kubelet and the drivers of a simulated node.

Follows pkg/kubelet/cm/dra. An annotation of the pod or the claim makes the preparation fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from steersman.api.core.v1 import Pod, PodResourceClaim
from steersman.api.resource.v1 import ResourceClaim
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_not_found
from steersman.client.informer import Informers, Key, key_of
from steersman.client.resources import RESOURCE_CLAIMS
from steersman.machinery.built_in.resource_claims import (
    ClaimNotCreated,
    foreign_claim_message,
    is_generated,
    is_owned_by,
    is_reserved_for,
    name_of,
)
from steersman.machinery.values import times
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.context import PodEvent
from steersman.nodes.devices.slices import DeviceSets

ERROR: Final = f"{PREFIX}prepare-error"
"""Annotation of a pod or a claim: the error of the driver."""
_AGAIN: Final = 10.0
"""Seconds until the preparation is tried again, as a kubelet does."""


class Prepared(NamedTuple):
    """State of a pod's claims."""

    is_ready: bool
    events: Sequence[PodEvent] = ()
    next_sync: float | None = None
    """Time of the next attempt, in seconds since 1970."""


class _NotPrepared(Exception):
    """A claim that cannot be prepared. The text is the kubelet's."""


_READY: Final = Prepared(True)


class Preparation:
    """Claims that are prepared on simulated nodes: `start` first.

    Drivers of `sets` report the devices in the statuses of claims. Other drivers count as there, and report nothing.
    """

    def __init__(self, client: Client, informers: Informers, sets: DeviceSets) -> None:
        self._client = client
        self._informers = informers
        self._drivers = sets.drivers
        self._of_pods: dict[Key, dict[str, Key]] = {}
        """Prepared claims of each pod, by UID."""
        self._users: dict[str, set[Key]] = {}
        """Pods that use a prepared claim, by its UID."""

    def start(self, wake: Callable[[Key], None]) -> None:
        """Call `wake` with a pod when a claim that is reserved for it changes."""

        def changed(_: ResourceClaim | None, claim: ResourceClaim | None) -> None:
            if claim is not None:
                for each in claim.status.reserved_for:
                    if each.resource == "pods":
                        wake((claim.metadata.namespace, each.name))

        self._informers.for_resource(RESOURCE_CLAIMS).on_change(changed)

    async def prepare(self, pod: Pod) -> Prepared:
        """Prepare the claims of a pod that has not started, or remember those of one that has.

        Raises StatusError, Unreachable.
        """
        claims, key = list(_claims_of(pod)), key_of(pod)
        if not claims or key in self._of_pods:
            return _READY
        has_started = bool(pod.status.pod_ip)
        try:
            found = [claim for each in claims if (claim := await self._claim(pod, each)) is not None]
            for claim in () if has_started else found:
                said = claim.metadata.annotations.get(ERROR) or pod.metadata.annotations.get(ERROR)
                if said:
                    text = f"NodePrepareResources failed for ResourceClaim {claim.metadata.name}: {said}"
                    raise _NotPrepared(text)
        except (_NotPrepared, ClaimNotCreated) as error:
            if has_started:
                return _READY
            text = f"Failed to prepare dynamic resources: prepare dynamic resources: {error}"
            event = PodEvent("Warning", "FailedPrepareDynamicResources", text)
            return Prepared(False, (event,), times.unix_now() + _AGAIN)
        for claim in found:
            self._users.setdefault(claim.metadata.uid, set()).add(key)
            await self._report(claim)
        self._of_pods[key] = {each.metadata.uid: key_of(each) for each in found}
        return _READY

    async def release(self, pod: Key) -> None:
        """Release the claims of a pod that has ended, if no other pod uses them. Raises StatusError, Unreachable."""
        for uid, claim in self._of_pods.pop(pod, {}).items():
            users = self._users.get(uid, set())
            users.discard(pod)
            if not users:
                self._users.pop(uid, None)
                await self._withdraw(uid, claim)

    async def _claim(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaim | None:
        """Return the claim of a pod's entry, None if it needs none. Raises _NotPrepared, ClaimNotCreated."""
        name, namespace = name_of(pod, entry), pod.metadata.namespace
        if name is None:
            return None
        claim = await self._client.find(RESOURCE_CLAIMS, name, namespace)
        if claim is None:
            missing = f'resourceclaims.resource.k8s.io "{name}" not found'
            raise _NotPrepared(f"fetch ResourceClaim {name}: {missing}")
        if is_generated(entry) and not is_owned_by(claim, pod):
            raise _NotPrepared(foreign_claim_message(claim, pod))
        if not is_reserved_for(claim, pod):
            mine = pod.metadata
            whose = f"{name} ({claim.metadata.uid})"
            raise _NotPrepared(f"pod {mine.name} ({mine.uid}) is not allowed to use ResourceClaim {whose}")
        if claim.status.allocation is None:
            raise _NotPrepared(f"ResourceClaim {name}: not allocated")
        return claim

    async def _report(self, claim: ResourceClaim) -> None:
        """Report the devices of a claim in its status, each driver its own."""
        allocation = claim.status.allocation
        reported = {(each.driver, each.pool, each.device) for each in claim.status.devices}
        by_driver: dict[str, list[dict[str, Any]]] = {}
        for each in allocation.devices.results if allocation is not None else ():
            if each.driver in self._drivers and (each.driver, each.pool, each.device) not in reported:
                condition = {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Prepared",
                    "message": "",
                    "lastTransitionTime": times.now(),
                }
                device = {"driver": each.driver, "pool": each.pool, "device": each.device, "conditions": [condition]}
                if each.share_id:
                    device["shareID"] = each.share_id
                by_driver.setdefault(each.driver, []).append(device)
        for driver, devices in by_driver.items():
            await self._apply(driver, claim.metadata.uid, key_of(claim), devices)

    async def _withdraw(self, uid: str, claim: Key) -> None:
        """Remove the devices of a claim that is no longer prepared from its status, if it still exists."""
        found = self._informers.for_resource(RESOURCE_CLAIMS).get(*claim)
        if found is None or found.metadata.uid != uid:
            return
        for driver in sorted({each.driver for each in found.status.devices} & self._drivers):
            with ignoring(lambda error: is_not_found(error) or error.code in (409, 422)):
                await self._apply(driver, uid, claim, [])

    async def _apply(self, driver: str, uid: str, claim: Key, devices: Sequence[dict[str, Any]]) -> None:
        namespace, name = claim
        configuration = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "status": {"devices": devices},
        }
        await self._client.apply(RESOURCE_CLAIMS, name, namespace, configuration, manager=driver, subresource="status")


def _claims_of(pod: Pod) -> Iterator[PodResourceClaim]:
    """Yield the entries of a pod's claims, with the one for its extended resources."""
    yield from pod.spec.resource_claims
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield PodResourceClaim(resource_claim_name=extended.resource_claim_name)
