"""Latest state of claims and volumes: from the informer, or from the response to a newer write of the binder."""

from __future__ import annotations

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.client.informer import Informer, Key, key_of
from steersman.controllers.volumes.binder.matching import Available


class LatestObjects:
    """Latest state of claims and volumes; `available` has the volumes for matching."""

    def __init__(self, claims: Informer[PersistentVolumeClaim], volumes: Informer[PersistentVolume]) -> None:
        self._claims = claims
        self._volumes = volumes
        self._written_claims: dict[Key, PersistentVolumeClaim] = {}
        self._written_volumes: dict[str, PersistentVolume] = {}
        self.available = Available()

    def claim(self, key: Key) -> PersistentVolumeClaim | None:
        """Return a claim, None if it does not exist."""
        return self._written_claims.get(key) or self._claims.get(*key)

    def volume(self, name: str) -> PersistentVolume | None:
        """Return a volume, None if it does not exist."""
        return self._written_volumes.get(name) or self._volumes.get("", name)

    def record_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Record a claim in the response to a write, and return it."""
        key = key_of(claim)
        cached = self._claims.get(*key)
        if cached is not None and _version(cached) < _version(claim):
            self._written_claims[key] = claim
        return claim

    def record_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Record a volume in the response to a write, and return it."""
        name = volume.metadata.name
        cached = self._volumes.get("", name)
        if cached is not None and _version(cached) < _version(volume):
            self._written_volumes[name] = volume
            self.available.put(volume)
        return volume

    def claim_changed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        """Update the record after a change of a claim in the informer."""
        if new is None:
            if old is not None:
                self._written_claims.pop(key_of(old), None)
            return
        written = self._written_claims.get(key_of(new))
        if written is not None and _version(new) >= _version(written):
            del self._written_claims[key_of(new)]

    def volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        """Update the record after a change of a volume in the informer."""
        if new is None:
            if old is not None:
                self._written_volumes.pop(old.metadata.name, None)
                self.available.discard(old.metadata.name)
            return
        name = new.metadata.name
        written = self._written_volumes.get(name)
        if written is not None and _version(new) < _version(written):
            return
        self._written_volumes.pop(name, None)
        self.available.put(new)


def _version(obj: PersistentVolume | PersistentVolumeClaim) -> int:
    return int(obj.metadata.resource_version)
