"""Matching of claims to volumes: the smallest available volume that satisfies a claim."""

from __future__ import annotations

from bisect import bisect_left, insort

from msgspec import Struct, field

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.client.informer import Key
from steersman.controllers.workloads.selectors import compile_selector
from steersman.machinery.built_in.classes import storage_class_of
from steersman.machinery.built_in.volumes import attributes_class_of, is_bound_to, mode_of, storage_of
from steersman.machinery.values.quantity import parse
from steersman.work.yielding import TimeSlice

_Kind = tuple[str, str, str]
"""Storage class, volume mode and attributes class, which must be equal in claim and volume."""
_Sized = tuple[int, str]
"""Capacity of a volume in billionths of a byte, and the volume's name."""


class _VolumesOfKind(Struct):
    """Volumes of one kind by access modes, each list in ascending order of size."""

    by_modes: dict[tuple[str, ...], list[_Sized]] = field(default_factory=dict)


class Available:
    """Index of available volumes, and of volumes that are reserved for a claim.

    Finding a volume takes logarithmic time in their number, or linear time if the claim has a label selector.
    """

    def __init__(self) -> None:
        self._volumes: dict[str, PersistentVolume] = {}
        self._kinds: dict[_Kind, _VolumesOfKind] = {}
        self._reserved: dict[Key, dict[str, None]] = {}

    def put(self, volume: PersistentVolume) -> None:
        """Add or update a volume."""
        self.discard(volume.metadata.name)
        self._volumes[volume.metadata.name] = volume
        ref = volume.spec.claim_ref
        if ref is not None:
            self._reserved.setdefault((ref.namespace, ref.name), {})[volume.metadata.name] = None
        elif _is_free(volume):
            of_kind = self._kinds.setdefault(_kind(volume), _VolumesOfKind())
            insort(of_kind.by_modes.setdefault(_modes(volume), []), _size_and_name(volume))

    def discard(self, name: str) -> None:
        """Remove a volume."""
        volume = self._volumes.pop(name, None)
        if volume is None:
            return
        ref = volume.spec.claim_ref
        if ref is not None:
            key = ref.namespace, ref.name
            meant = self._reserved[key]
            del meant[name]
            if not meant:
                del self._reserved[key]
        elif _is_free(volume):
            kind, modes, sized = _kind(volume), _modes(volume), _size_and_name(volume)
            of_kind = self._kinds[kind]
            volumes = of_kind.by_modes[modes]
            del volumes[bisect_left(volumes, sized)]
            if not volumes:
                del of_kind.by_modes[modes]
                if not of_kind.by_modes:
                    del self._kinds[kind]

    async def match(self, claim: PersistentVolumeClaim, *, delayed: bool) -> PersistentVolume | None:
        """Return the volume that is reserved for a claim, else the smallest suitable one (FindMatchingVolume).

        With `delayed` binding only a reserved volume counts. Raises SelectorError.
        """
        metadata = claim.metadata
        for name in sorted(self._reserved.get((metadata.namespace, metadata.name), ())):
            volume = self._volumes[name]
            if is_bound_to(volume, claim) and _satisfies_reservation(volume, claim):
                return volume
        if delayed:
            return None
        selector = None if claim.spec.selector is None else await compile_selector(claim.spec.selector)
        time_slice = TimeSlice()
        of_kind = self._kinds.get(_kind(claim))
        desired = set(claim.spec.access_modes)
        for modes in sorted(of_kind.by_modes, key=len) if of_kind is not None else ():
            if not desired <= set(modes):
                continue
            assert of_kind is not None
            sizes = of_kind.by_modes.get(modes, [])
            first = bisect_left(sizes, (_requested_size(claim), ""))
            if selector is None:
                if first < len(sizes):
                    return self._volumes[sizes[first][1]]
                continue
            for _, name in sizes[first:]:
                candidate = self._volumes.get(name)  # it may be gone, as other tasks run in between
                if candidate is not None and _is_free(candidate) and selector.matches(candidate.metadata.labels):
                    return candidate
                await time_slice.pause_if_over()
        return None


def _is_free(volume: PersistentVolume) -> bool:
    available = volume.status.phase == "Available" and volume.spec.claim_ref is None
    return available and not volume.metadata.deletion_timestamp


def _satisfies_reservation(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return True if a reserved volume satisfies its claim; class and labels need not match."""
    return (
        _size_and_name(volume)[0] >= _requested_size(claim)
        and _kind(volume)[1:] == _kind(claim)[1:]
        and not volume.metadata.deletion_timestamp
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def unsuitable(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Return the reason why a claim cannot be bound to the volume it names; "" if it can (checkVolumeSatisfyClaim)."""
    if volume.metadata.deletion_timestamp:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if parse(storage_of(volume.spec.capacity)).as_int() < parse(storage_of(claim.spec.resources.requests)).as_int():
        return "requested PV is too small"
    if storage_class_of(volume) != storage_class_of(claim):
        return "storageClassName does not match"
    if attributes_class_of(volume) != attributes_class_of(claim):
        return "volumeAttributesClassName does not match"
    if mode_of(volume) != mode_of(claim):
        return "incompatible volumeMode"
    if not set(claim.spec.access_modes) <= set(volume.spec.access_modes):
        return "incompatible accessMode"
    return ""


def _kind(obj: PersistentVolume | PersistentVolumeClaim) -> _Kind:
    return storage_class_of(obj), mode_of(obj), attributes_class_of(obj)


def _modes(volume: PersistentVolume) -> tuple[str, ...]:
    return tuple(sorted(set(volume.spec.access_modes)))


def _size_and_name(volume: PersistentVolume) -> _Sized:
    return parse(storage_of(volume.spec.capacity)).nanos(), volume.metadata.name


def _requested_size(claim: PersistentVolumeClaim) -> int:
    return parse(storage_of(claim.spec.resources.requests)).nanos()
