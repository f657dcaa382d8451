"""Base classes of the driver's controllers: their service account, and access to claims of the driver's volumes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Any, TypeVar

import msgspec

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.client.events import reference
from steersman.client.informer import Key
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.volumes.driver.objects import DRIVER

K = TypeVar("K", bound=Hashable)

ACCOUNT = "steersman-simulation"


class DriverComponent(Controller[K]):
    """A controller of the driver. It uses the simulation's account, not an account of kube-controller-manager."""

    account = ACCOUNT
    component = DRIVER


class ClaimComponent(DriverComponent[Key]):
    """A controller of claims that are bound to volumes of the driver. A key is the namespace and name of a claim."""

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self.claims = self.informers.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self.volumes = self.informers.for_resource(PERSISTENT_VOLUMES)

    async def sync(self, key: Key) -> None:
        claim = self.claims.get(*key)
        volume = None if claim is None else self.volumes.get("", claim.spec.volume_name)
        if claim is not None and volume is not None and volume.spec.csi and volume.spec.csi.driver == DRIVER:
            await self.sync_bound(claim, volume)

    @abstractmethod
    async def sync_bound(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        """Reconcile a claim and its volume. Raises StatusError, Unreachable, TryLater to be retried."""

    async def put_status(self, claim: PersistentVolumeClaim, **members: Any) -> PersistentVolumeClaim:
        """Update members of a claim's status, and return the claim. Raises StatusError, Unreachable."""
        status = msgspec.structs.replace(claim.status, **members)
        return await self.client.update_status(PERSISTENT_VOLUME_CLAIMS, msgspec.structs.replace(claim, status=status))

    def record_event(self, claim: PersistentVolumeClaim, reason: str, message: str, type_: str = "Normal") -> None:
        """Record an event about a claim."""
        self.recorder.event(reference(PERSISTENT_VOLUME_CLAIMS, claim), type_, reason, message)
