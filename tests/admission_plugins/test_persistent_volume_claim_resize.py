"""Tests of PersistentVolumeClaimResize: claims that may grow."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import UPDATE, Chain
from steersman.admission_plugins.persistent_volume_claim_resize import PersistentVolumeClaimResize
from steersman.api.core.v1 import PersistentVolumeClaim
from steersman.api.storage.v1 import StorageClass
from steersman.machinery.built_in.classes import STORAGE_CLASS
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.core.volumes.persistentvolumeclaims import PERSISTENT_VOLUME_CLAIMS
from tests.admission_plugins.writes import refusal, write_of

CLASSES = {
    name: StorageClass(allow_volume_expansion=allowed)
    for name, allowed in (("growing", True), ("fixed", False), ("silent", None))
}
PLUGIN = PersistentVolumeClaimResize(CLASSES.get)
NOT_BOUND = "Only bound persistent volume claims can be expanded"
NOT_BY_CLASS = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must"


def claim(size: str | None, name: str | None = "growing", phase: str = "Bound", **annotations: str) -> Any:
    requests = {"requests": {"storage": size}} if size else {}
    body = {
        "metadata": {"name": "c", "namespace": "ns", "annotations": annotations},
        "spec": {"resources": requests, **({} if name is None else {"storageClassName": name})},
        "status": {"phase": phase},
    }
    return from_plain(PersistentVolumeClaim, body)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (claim("1Gi"), claim("2Gi")),
        (claim("1Gi", "fixed"), claim("1024Mi", "fixed")),
        (claim("2Gi", "fixed", "Pending"), claim("1Gi", "fixed")),
        (claim(None, "fixed"), claim(None, "fixed")),
        (claim("1Gi", None, **{STORAGE_CLASS: "growing"}), claim("2Gi", None, **{STORAGE_CLASS: "growing"})),
    ],
)
async def test_a_claim_grows_where_its_class_lets_it_or_does_not_grow(old: Any, new: Any) -> None:
    await PLUGIN.validate(write_of(PERSISTENT_VOLUME_CLAIMS, new, UPDATE, old=old))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (claim("1Gi", phase="Pending"), claim("2Gi"), NOT_BOUND),
        (claim(None, phase="Lost"), claim("1", phase="Bound"), NOT_BOUND),
        (claim("1Gi", "fixed"), claim("2Gi", "fixed"), NOT_BY_CLASS),
        (claim("1Gi", "silent"), claim("2Gi", "silent"), NOT_BY_CLASS),
        (claim("1Gi", "gone"), claim("2Gi", "gone"), NOT_BY_CLASS),
        (claim("1Gi", None), claim("2Gi", None), NOT_BY_CLASS),
        (claim("1Gi", "fixed"), claim("2Gi", "growing"), NOT_BY_CLASS),
    ],
)
async def test_a_claim_that_may_not_grow_is_refused(old: Any, new: Any, text: str) -> None:
    message = await refusal(PLUGIN.validate(write_of(PERSISTENT_VOLUME_CLAIMS, new, UPDATE, old=old)))
    assert message.startswith(f'persistentvolumeclaims "c" is forbidden: {text}')


async def test_a_claims_status_is_let_alone() -> None:
    old, new = claim("1Gi", "fixed"), claim("2Gi", "fixed")
    await Chain((PLUGIN,)).validate(write_of(PERSISTENT_VOLUME_CLAIMS, new, UPDATE, old=old, subresource="status"))
