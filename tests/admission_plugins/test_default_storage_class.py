"""Tests of DefaultStorageClass."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import Chain
from steersman.admission_plugins.default_storage_class import DefaultStorageClass
from steersman.api.core.v1 import PersistentVolumeClaim
from steersman.machinery.built_in.classes import STORAGE_CLASS
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.core.volumes.persistentvolumeclaims import PERSISTENT_VOLUME_CLAIMS
from tests.admission_plugins.writes import write_of


def claim(spec: dict[str, Any], **annotations: str) -> PersistentVolumeClaim:
    metadata = {"name": "c", "namespace": "ns", "annotations": annotations}
    return from_plain(PersistentVolumeClaim, {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (claim({}), "usual"),
        (claim({"storageClassName": ""}), ""),
        (claim({"storageClassName": "own"}), "own"),
        (claim({}, **{STORAGE_CLASS: "old"}), None),
    ],
)
async def test_claims_that_name_no_class_get_the_default(made: PersistentVolumeClaim, expected: str | None) -> None:
    await DefaultStorageClass(lambda: "usual").admit(write_of(PERSISTENT_VOLUME_CLAIMS, made))
    assert made.spec.storage_class_name == expected


async def test_without_a_default_a_claim_stays_without_a_class() -> None:
    made = claim({})
    await DefaultStorageClass(lambda: None).admit(write_of(PERSISTENT_VOLUME_CLAIMS, made))
    assert made.spec.storage_class_name is None


async def test_a_claims_status_is_let_alone() -> None:
    made = claim({})
    await Chain((DefaultStorageClass(lambda: "usual"),)).admit(
        write_of(PERSISTENT_VOLUME_CLAIMS, made, subresource="status")
    )
    assert made.spec.storage_class_name is None
