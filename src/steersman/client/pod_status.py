"""Patches of a pod's status, as upstream's controllers and kubelets send them (pkg/util/pod)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.core.v1 import Pod
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.resources import PODS


async def patch_pod_status(client: Client, pod: Pod, status: Mapping[str, Any]) -> None:
    """Merge plain data into the status of the pod with this uid. Raises StatusError, Unreachable."""
    metadata = pod.metadata
    patch = {"metadata": {"uid": metadata.uid}, "status": status}
    await client.patch_without_result(
        PODS, metadata.name, metadata.namespace, patch, media=STRATEGIC_MERGE_PATCH, subresource="status"
    )
