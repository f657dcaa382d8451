"""The last decisions of the scheduler about a pod, where the server keeps them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from steersman.api.core import v1 as core
from steersman.client.api_resource import APIResource
from steersman.explain.finding import Finding, note
from steersman.explain.world import World

LAST_DECISIONS: Final = "LastDecisions"
"""Reason of the finding; its details have the member `decisions`."""


async def check_decisions(world: World, resource: APIResource[Any], pod: core.Pod) -> AsyncIterator[Finding]:
    """Yield a note with the last decisions about a pod; nothing if the server keeps none or may not tell them."""
    decisions = await world.decisions(pod.metadata.namespace, pod.metadata.name)
    if decisions:
        text = (
            "last decision of the scheduler"
            if len(decisions) == 1
            else "last decisions of the scheduler, the newest last"
        )
        yield note(LAST_DECISIONS, text, details={"decisions": msgspec.to_builtins(decisions)})
