"""Writes of the scheduler into a pod's status: the reason for no node, the nominated node, the reason for a
deletion.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.core.v1 import Pod, PodCondition
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.resources import PODS
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition

_CONTENT: Final = ("status", "reason", "message", "observed_generation")


async def patch_status(
    client: Client, pod: Pod, wanted: PodCondition | None = None, *, nominated: str | None = None
) -> None:
    """Write a condition and the nominated node, if they differ from those of `pod`. Raises StatusError."""
    status: dict[str, Any] = {}
    if wanted is not None:
        changed = _changed_condition(pod, wanted)
        if changed is not None:
            status["conditions"] = [changed]
            status["$setElementOrder/conditions"] = _order(pod, wanted.type)
    if nominated is not None and nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    if status:
        metadata = pod.metadata
        await client.patch(
            PODS.metadata_only,
            metadata.name,
            metadata.namespace,
            {"status": status},
            media=STRATEGIC_MERGE_PATCH,
            subresource="status",
        )


def _order(pod: Pod, type_: str) -> list[dict[str, str]]:
    types = dict.fromkeys([*(each.type for each in pod.status.conditions), type_])
    return [{"type": each} for each in types]


def _changed_condition(pod: Pod, wanted: PodCondition) -> dict[str, Any] | None:
    old = find_condition(pod.status.conditions, wanted.type)
    if old is not None and all(getattr(old, name) == getattr(wanted, name) for name in _CONTENT):
        return None
    changed: dict[str, Any] = {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastProbeTime": None,
    }
    if wanted.observed_generation:
        changed["observedGeneration"] = wanted.observed_generation
    if old is None or old.status != wanted.status:
        changed["lastTransitionTime"] = times.now()
    return changed
