"""Ownership of the number of replicas through the scale subresource (apimachinery `ScaleHandler`).

Each manager that owns the parent's replicas is a manager of the Scale, and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.machinery.codec.serializer import encode

from .field_set import FieldSet, contains, difference, set_of
from .managers import Managed, Managers, decode_managers, encode_managers

SCALE_VERSION: Final = "autoscaling/v1"
_IN_SCALE: Final = ("f:spec", "f:replicas")
_SCALE_FIELDS: Final[FieldSet] = set_of([_IN_SCALE])

ReplicasPaths = Mapping[str, tuple[str, ...] | None]
"""Paths of the replicas by the parent's version, e.g. {"apps/v1": ("f:spec", "f:replicas")}; None if it has none."""


def to_scale(parent: Sequence[ManagedFieldsEntry], paths: ReplicasPaths) -> list[ManagedFieldsEntry]:
    """Return the entries of a Scale from its parent's entries. Raises ManagedFieldsError."""
    managers: Managers = {}
    for key, managed in decode_managers(parent).items():
        path = paths.get(managed.api_version)
        if path and contains(managed.fields, path):
            managers[key] = Managed(_SCALE_FIELDS, SCALE_VERSION, managed.time)
    # As upstream, managers keep the parent's version in their keys; the entries have the Scale's version.
    return encode_managers(managers)


def to_parent(
    parent: Sequence[ManagedFieldsEntry], scale: Sequence[ManagedFieldsEntry], api_version: str, paths: ReplicasPaths
) -> list[ManagedFieldsEntry]:
    """Return the parent's entries after a write of a Scale with the entries `scale`, in `api_version`.

    Raises ManagedFieldsError. New managers have no time, as upstream.
    """
    before = decode_managers(parent)
    scaled = decode_managers(scale)
    managers: Managers = {}
    for key, managed in before.items():
        if managed.api_version not in paths:
            continue
        path = paths[managed.api_version]
        if not path or not contains(managed.fields, path):
            managers[key] = managed
        elif key in scaled:
            managers[key] = managed
            del scaled[key]
        else:
            rest = difference(managed.fields, set_of([path]))
            if rest:
                managers[key] = managed.with_fields(rest)
    target = paths.get(api_version)
    for key, managed in scaled.items():
        if target and contains(managed.fields, _IN_SCALE):
            known = before.get(key)
            time = None if known is None else known.time
            managers[key] = Managed(set_of([target]), api_version, time)
    return [_by_text(entry) for entry in encode_managers(managers)]


def _by_text(entry: ManagedFieldsEntry) -> ManagedFieldsEntry:
    """Return the entry with the elements of its set in the order of their text (443 before 80).

    Upstream converts the set to plain data here, which has its keys in that order. The bytes differ from those in the
    usual order, so a write that changes nothing else counts as a change.
    """
    return replace(entry, fields_v1=msgspec.Raw(encode(msgspec.json.decode(entry.fields_v1 or b"{}"))))
