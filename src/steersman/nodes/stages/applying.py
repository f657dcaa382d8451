"""Creation and change of other objects by stages (kwok `pkg/utils/lifecycle/apply.go`)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import APPLY_PATCH, Client
from steersman.client.errors import is_already_exists, is_not_found
from steersman.machinery.errors.status import StatusError
from steersman.nodes.stages.kinds import resource_of
from steersman.nodes.stages.open_objects import OpenObject, OpenResource
from steersman.nodes.stages.steps import PreparedApply
from steersman.work.bounded_cache import BoundedCache
from steersman.work.token_bucket import TokenBucket

_MANAGER: Final = "kwok"
_MOST_KINDS: Final = 256
BURST: Final = 500
"""Objects that all stages together apply in a row without a pause."""
PER_SECOND: Final = 100.0
"""Objects that all stages together apply in a second, as stages may make objects that play the same stages."""


class ServedLater(Exception):
    """The server does not serve the kind of an object now."""


class Applying:
    """Applies the objects of all stages of a cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._resources: BoundedCache[tuple[str, str], OpenResource] = BoundedCache(_MOST_KINDS)
        self._pace = TokenBucket(BURST, PER_SECOND, asyncio.get_running_loop().time)

    async def apply(self, apply: PreparedApply, plain: dict[str, Any], namespace: str) -> None:
        """Create an object, or patch the one that exists. `namespace` is the default of its namespace.

        Raises StatusError, Unreachable, ServedLater.
        """
        await self._pace.wait()
        key = plain["apiVersion"], plain["kind"]
        resource = self._resources[key] or await resource_of(self._client, *key)
        if resource is None:
            raise ServedLater(f"the server does not serve {key[1]} ({key[0]})")
        self._resources.keep(key, resource)
        metadata = plain["metadata"]
        if resource.namespaced and not metadata.get("namespace"):
            metadata = {**metadata, "namespace": namespace}
            plain = {**plain, "metadata": metadata}
        client = self._client.impersonating(apply.user) if apply.user else self._client
        try:
            await _create_or_patch(client, resource, apply, plain)
        except StatusError as error:
            if is_not_found(error):
                self._resources.forget()
            raise


async def _create_or_patch(client: Client, resource: OpenResource, apply: PreparedApply, plain: dict[str, Any]) -> None:
    metadata = plain["metadata"]
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
    if not apply.subresource:
        try:
            await client.create(
                resource, OpenObject(ObjectMeta(name=name, namespace=namespace), msgspec.json.encode(plain))
            )
        except StatusError as error:
            if not is_already_exists(error) or not name:
                raise
        else:
            return
    if apply.media == APPLY_PATCH:
        await client.apply(resource, name, namespace, plain, manager=_MANAGER, subresource=apply.subresource)
    else:
        await client.patch_without_result(
            resource, name, namespace, plain, media=apply.media, subresource=apply.subresource
        )
