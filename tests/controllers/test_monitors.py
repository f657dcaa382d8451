"""Tests of monitors: metadata of all resources, shared with other informers."""

from __future__ import annotations

import asyncio

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta, PartialObjectMetadata
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.discovery import DiscoveryResult, preferred_resources
from steersman.client.in_process import InProcessTransport
from steersman.client.informer import Informers
from steersman.client.resources import CONFIG_MAPS, SECRETS
from steersman.controllers.monitors import Monitors
from steersman.testing import Environment
from tests.controllers.waiting import eventually


async def test_what_others_follow_is_followed_once() -> None:
    told: list[tuple[str, str, str]] = []

    def changed(resource: APIResource[PartialObjectMetadata], old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        if resource == CONFIG_MAPS.metadata_only:
            told.append((resource.plural, old.name if old else "", new.name if new else ""))

    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        client = Client(InProcessTransport(server.handler, environment.token()), "test")
        informers = Informers(client)
        whole = informers.for_resource(CONFIG_MAPS)
        some = informers.for_resource(SECRETS, field_selector="type=other")
        informers.start()
        await informers.wait_until_synced()
        monitors = Monitors(client, informers)
        monitors.on_change(changed)
        monitors.start()
        await monitors.wait_until_synced()
        followed = dict(monitors.followed())
        assert followed[CONFIG_MAPS.metadata_only] is whole
        assert followed[SECRETS.metadata_only] is not some

        async def is_reported_gone() -> bool:
            return ("configmaps", "a", "") in told

        async def is_reported() -> bool:
            return whole.get("default", "b") is not None

        await client.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
        await client.delete(CONFIG_MAPS, "a", "default")
        await eventually(is_reported_gone)
        assert [each for each in told if "a" in each] == [("configmaps", "", "a"), ("configmaps", "a", "")]
        await monitors.stop()
        await client.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="b", namespace="default")))
        await eventually(is_reported)
        await informers.stop()


async def test_what_could_not_be_found_out_is_looked_for_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = True

    async def without_secrets_at_first(client: Client) -> DiscoveryResult:
        found = await preferred_resources(client)
        if not hidden:
            return found
        return DiscoveryResult([each for each in found.served if each.resource != SECRETS.metadata_only], ("v1",))

    monkeypatch.setattr("steersman.controllers.monitors.preferred_resources", without_secrets_at_first)

    async def followed() -> bool:
        return monitors.resource_of("", "Secret") == SECRETS.metadata_only

    async with Environment() as environment:
        server = environment.plane.server
        assert server is not None
        client = Client(InProcessTransport(server.handler, environment.token()), "test")
        informers = Informers(client)
        informers.start()
        monitors = Monitors(client, informers)
        monitors.start()
        await monitors.wait_until_synced()
        await asyncio.sleep(0.5)  # until the APIServices that are there are a reason to look no more
        assert monitors.resource_of("", "Secret") is None
        hidden = False
        await eventually(followed, seconds=10)
        await monitors.stop()
        await informers.stop()
