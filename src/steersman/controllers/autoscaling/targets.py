"""Targets of autoscalers: the resource of a kind, and the scale of an object (RESTMapper, ScalesGetter)."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import urlencode

from steersman.api.autoscaling.v1 import Scale
from steersman.client.api_resource import APIResource
from steersman.client.client import Client, decoded
from steersman.client.discovery import preferred_resources
from steersman.client.resources import SCALES
from steersman.controllers.autoscaling.replicas import NoProposal
from steersman.machinery.errors.field import quote
from steersman.work import simulated_time

_CACHE_SECONDS: Final = 30.0
"""Seconds for which a discovery is cached (kube-controller-manager's RESTMapper)."""
_NEGATIVE_CACHE_SECONDS: Final = 2.0
"""Seconds before a discovery is repeated for a kind that was not found."""


class Mapper:
    """Maps kinds to resources, by cached discovery."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], APIResource[Any]] = {}
        self._at = float("-inf")
        self._asking = asyncio.Lock()

    async def resource_of(self, group: str, kind: str) -> APIResource[Any]:
        """Return the resource of a kind in its preferred version.

        Raises NoProposal for a kind that is not served, StatusError, Unreachable.
        """
        async with self._asking:
            age = simulated_time.time() - self._at
            if age > _CACHE_SECONDS or ((group, kind) not in self._known and age > _NEGATIVE_CACHE_SECONDS):
                resources = await preferred_resources(self._client)
                self._known = {
                    (each.resource.group, each.resource.kind): each.resource for each in reversed(resources.served)
                }
                self._at = simulated_time.time()
        resource = self._known.get((group, kind))
        if resource is None:
            raise NoProposal(f"no matches for kind {quote(kind)} in group {quote(group)}")
        return resource


def group_of(api_version: str) -> str:
    """Return the group of an apiVersion. Raises NoProposal for an invalid text."""
    parts = api_version.split("/")
    if len(parts) > 2:
        raise NoProposal(f"unexpected GroupVersion string: {api_version}")
    return parts[0] if len(parts) == 2 else ""


async def get_scale(client: Client, resource: APIResource[Any], namespace: str, name: str) -> Scale:
    """Return the scale of an object. Raises StatusError, Unreachable."""
    return await decoded(SCALES.decode, await client.request("GET", resource.path(namespace, name, "scale")))


async def put_scale(client: Client, resource: APIResource[Any], scale: Scale) -> Scale:
    """Update the scale of an object and return it. Raises StatusError (Conflict if it has changed), Unreachable."""
    metadata = scale.metadata
    path = resource.path(metadata.namespace, metadata.name, "scale")
    target = f"{path}?{urlencode({'fieldManager': client.manager})}"
    return await decoded(SCALES.decode, await client.request("PUT", target, SCALES.encode(scale)))
