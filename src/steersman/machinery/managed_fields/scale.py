"""Ownership of the number of replicas, seen through the scale subresource (apimachinery `ScaleHandler`).

A Scale has a manager for every manager of the parent that owns the parent's replicas, and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from steersman.api.meta.v1 import ManagedFieldsEntry
from steersman.machinery.codec.serializer import encode

from .field_set import FieldSet, difference, has, set_of
from .managers import Managed, Managers, decode_managers, encode_managers

SCALE_VERSION: Final = "autoscaling/v1"
_IN_SCALE: Final = ("f:spec", "f:replicas")
_SCALE_FIELDS: Final[FieldSet] = set_of([_IN_SCALE])

ReplicasPaths = Mapping[str, tuple[str, ...] | None]
"""By version of the parent: where its replicas are, e.g. {"apps/v1": ("f:spec", "f:replicas")}; None if nowhere."""


def to_scale(parent: Sequence[ManagedFieldsEntry], paths: ReplicasPaths) -> list[ManagedFieldsEntry]:
    """The entries of a Scale. Raises ManagedFieldsError."""
    managers: Managers = {}
    for key, managed in decode_managers(parent).items():
        path = paths.get(managed.api_version)
        if path and has(managed.fields, path):
            managers[key] = Managed(_SCALE_FIELDS, SCALE_VERSION, managed.time)
    # As upstream, managers keep the parent's version in their identity; the entries say the Scale's.
    return encode_managers(managers)


def to_parent(
    parent: Sequence[ManagedFieldsEntry], scale: Sequence[ManagedFieldsEntry], api_version: str, paths: ReplicasPaths
) -> list[ManagedFieldsEntry]:
    """The parent's entries after a Scale with these entries was written into it, in `api_version`.

    Raises ManagedFieldsError. New managers have no time, as upstream gives them none.
    """
    before = decode_managers(parent)
    scaled = decode_managers(scale)
    managers: Managers = {}
    for key, managed in before.items():
        if managed.api_version not in paths:
            continue
        path = paths[managed.api_version]
        if not path or not has(managed.fields, path):
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
        if target and has(managed.fields, _IN_SCALE):
            known = before.get(key)
            time = None if known is None else known.time
            managers[key] = Managed(set_of([target]), api_version, time)
    return [_by_text(entry) for entry in encode_managers(managers)]


def _by_text(entry: ManagedFieldsEntry) -> ManagedFieldsEntry:
    """The entry with the elements of its set in the order of their text, 443 before 80.

    Upstream's goes through plain data here, which has its keys in that order; as its bytes differ from those in the
    usual order, a write that changes nothing else is a write.
    """
    return replace(entry, fields_v1=msgspec.Raw(encode(msgspec.json.decode(entry.fields_v1 or b"{}"))))
