"""PersistentVolumeClaims that are not bound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from steersman.api.core.v1 import PersistentVolumeClaim
from steersman.client.api_resource import APIResource
from steersman.client.resources import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES
from steersman.explain.explainer import Explainer
from steersman.explain.finding import Finding, Severity, at_field, reference
from steersman.explain.world import World


def _summarize(claim: PersistentVolumeClaim) -> str:
    return claim.status.phase or "no phase"


async def _check_class(
    world: World, resource: APIResource[Any], claim: PersistentVolumeClaim
) -> AsyncIterator[Finding]:
    if claim.status.phase == "Bound" or not claim.spec.storage_class_name:
        return
    if await world.get(STORAGE_CLASSES, claim.spec.storage_class_name) is None:
        subject = reference(resource, claim)
        yield Finding(
            Severity.ERROR,
            "StorageClassMissing",
            f"StorageClass {claim.spec.storage_class_name} does not exist",
            (at_field(subject, ".spec.storageClassName", claim.spec.storage_class_name),),
        )


VOLUME_CLAIMS: Final = Explainer(PERSISTENT_VOLUME_CLAIMS, _summarize, (_check_class,))
