"""Tests of controllers on a remote server."""

from __future__ import annotations

import asyncio

from steersman.api.core.v1 import Namespace
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import LEASES, NAMESPACES, SERVICE_ACCOUNTS
from steersman.controllers.all import CONTROLLERS
from steersman.controllers.controller import Settings
from steersman.controllers.standalone import Standalone
from steersman.testing import Environment
from tests.controllers.waiting import eventually


async def test_they_work_under_accounts_of_their_own_while_they_lead() -> None:
    async with Environment(listen=True) as environment:
        transport = TLSTransport.from_kubeconfig(environment.kubeconfig())
        standalone = Standalone(Settings(root_ca="PEM"), CONTROLLERS, use_service_account_credentials=True)
        working = asyncio.ensure_future(standalone.run(transport))
        client = Client(TLSTransport.from_kubeconfig(environment.kubeconfig()), "tests")
        await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="a")))

        async def has_account() -> bool:
            return bool((await client.list(SERVICE_ACCOUNTS, "a")).items)

        await eventually(has_account)
        accounts = {each.metadata.name for each in (await client.list(SERVICE_ACCOUNTS, "kube-system")).items}
        assert {"namespace-controller", "generic-garbage-collector", "replicaset-controller"} <= accounts
        working.cancel()
        await asyncio.wait([working])
        lease = await client.get(LEASES, "kube-controller-manager", "kube-system")
        assert lease.spec.holder_identity == ""
        await client.aclose()
