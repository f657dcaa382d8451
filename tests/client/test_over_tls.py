"""Tests of the transport over TLS, configured by a kubeconfig."""

from __future__ import annotations

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.informer import Informer
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import CONFIG_MAPS
from steersman.client.transport import Unreachable
from steersman.machinery.errors.status import StatusError
from steersman.testing import Environment
from steersman.webhooks.kubeconfig import load_kubeconfig


async def test_objects_and_watches_go_through_a_socket() -> None:
    async with Environment(listen=True) as environment:
        transport = TLSTransport.from_kubeconfig(environment.kubeconfig())
        client = Client(transport, "tests")
        informer = Informer(client, CONFIG_MAPS)
        informer.start()
        await informer.wait_until_synced()
        notified: list[str] = []
        informer.on_change(lambda _, new: notified.append(new.metadata.name if new else ""))
        made = await client.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
        assert (await client.get(CONFIG_MAPS, "a", "default")).metadata.uid == made.metadata.uid
        nobody = Client(transport.with_token(lambda: "wrong"), "tests")
        with pytest.raises(StatusError) as refused:
            await nobody.list(CONFIG_MAPS)
        assert refused.value.code == 401
        await client.delete(CONFIG_MAPS, "a", "default")
        await informer.stop()
        await nobody.aclose()
        await client.aclose()


async def test_a_response_has_a_limit_also_with_another_token() -> None:
    async with Environment(listen=True) as environment:
        transport = TLSTransport(load_kubeconfig(environment.kubeconfig()), longest=20)
        for each in (transport, transport.with_token(lambda: "wrong")):
            client = Client(each, "tests")
            with pytest.raises(Unreachable, match="longer than 20 bytes"):
                await client.request("GET", "/apis")
            await client.aclose()


async def test_a_server_that_is_gone_is_unreachable() -> None:
    async with Environment(listen=True) as environment:
        client = Client(TLSTransport.from_kubeconfig(environment.kubeconfig()), "tests")
        await client.list(CONFIG_MAPS)
    with pytest.raises(Unreachable):
        await client.list(CONFIG_MAPS)
    await client.aclose()
