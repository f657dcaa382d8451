"""Tests of StorageObjectInUseProtection: finalizers of storage objects."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import Chain
from steersman.admission_plugins.storage_object_in_use_protection import StorageObjectInUseProtection
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.core.volumes.persistentvolumeclaims import PERSISTENT_VOLUME_CLAIMS
from steersman.registry.core.volumes.persistentvolumes import PERSISTENT_VOLUMES
from steersman.registry.storage.volumeattributesclasses import VOLUME_ATTRIBUTES_CLASSES
from steersman.rest.resource import Resource
from tests.admission_plugins.writes import write_of
from tests.struct_class import struct_class

PLUGIN = StorageObjectInUseProtection()
KINDS: list[tuple[Resource[Any], str]] = [
    (PERSISTENT_VOLUMES, "kubernetes.io/pv-protection"),
    (PERSISTENT_VOLUME_CLAIMS, "kubernetes.io/pvc-protection"),
    (VOLUME_ATTRIBUTES_CLASSES, "kubernetes.io/vac-protection"),
]


def make_object(resource: Resource[Any], *finalizers: str) -> Any:
    return from_plain(struct_class(resource.kind), {"metadata": {"name": "a", "finalizers": list(finalizers)}})


@pytest.mark.parametrize(("resource", "finalizer"), KINDS)
async def test_each_kind_has_its_finalizer_once_and_last(resource: Resource[Any], finalizer: str) -> None:
    for given, expected in (((), [finalizer]), (("a.b/c",), ["a.b/c", finalizer]), ((finalizer,), [finalizer])):
        made = make_object(resource, *given)
        await PLUGIN.admit(write_of(resource, made))
        assert made.metadata.finalizers == expected


async def test_no_other_kind_is_looked_at() -> None:
    assert {(each.group, each.resource) for each in PLUGIN.resources or ()} == {
        (resource.group, resource.plural) for resource, _ in KINDS
    }


async def test_subresources_are_let_alone() -> None:
    made = make_object(PERSISTENT_VOLUMES)
    await Chain((PLUGIN,)).admit(write_of(PERSISTENT_VOLUMES, made, subresource="status"))
    assert made.metadata.finalizers == []
