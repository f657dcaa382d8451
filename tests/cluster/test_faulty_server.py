"""Faults of a server without a cluster."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.cli.flags import parse
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.client.resources import CONFIG_MAPS
from steersman.cluster.fault_objects.definition import FAULTS
from steersman.cluster.fault_objects.server import FaultyServer
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.errors.status import StatusError
from tests.controllers.waiting import eventually


def administrator(server: FaultyServer) -> Client:
    """Return a client with all rights."""
    running = server.plane.server
    assert running is not None
    token = server.plane.token_of(UserInfo("jane", groups=("system:masters",)))
    return Client(InProcessTransport(running.handler, token), "test")


async def apply(client: Client, name: str, **spec: Any) -> None:
    body = {"apiVersion": FAULTS.api_version, "kind": "Fault", "metadata": {"name": name}, "spec": spec}
    await client.apply(FAULTS, name, "", body)


async def has_reason(client: Client, name: str, reason: str) -> bool:
    """Return True if the condition Active of a fault has a reason."""
    status = (await client.get(FAULTS, name)).status
    return bool(status) and status["conditions"][0]["reason"] == reason


@pytest.mark.asyncio
async def test_a_server_alone_has_faults(tmp_path: Path) -> None:
    server = FaultyServer(Options(data_dir=tmp_path, storage="memory", listen=False, faults=True))
    await server.start()
    try:
        client = administrator(server)

        async def create(name: str) -> int:
            try:
                await client.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))
            except StatusError as error:
                return error.code
            return 201

        async def has_status(reason: str, injected: int) -> bool:
            status = (await client.get(FAULTS, "teapot")).status
            return bool(status) and (status["conditions"][0]["reason"], status["injected"]) == (reason, injected)

        spec = {
            "match": {"resources": ["configmaps"], "users": ["jane"]},
            "when": {"times": 1},
            "effect": {"status": {"code": 418}},
        }
        await apply(client, "teapot", **spec)
        await eventually(lambda: has_status("Injecting", 0))
        assert [await create("a"), await create("a")] == [418, 201]
        await eventually(lambda: has_status("Exhausted", 1))
    finally:
        await server.stop()


@pytest.mark.asyncio
async def test_a_fault_whose_time_has_passed_stays_over_after_a_restart(tmp_path: Path) -> None:
    options = Options(data_dir=tmp_path, listen=False, faults=True)
    versions = []
    for is_new in (True, False):
        server = FaultyServer(options)
        await server.start()
        try:
            client = administrator(server)
            if is_new:
                await apply(client, "a-past", when={"for": "10ms"}, effect={"status": {"code": 418}})
                await eventually(partial(has_reason, client, "a-past", "Over"))
            else:
                await apply(client, "b-next", match={"names": ["none"]}, effect={"status": {"code": 419}})
                await eventually(partial(has_reason, client, "b-next", "Injecting"))
            versions.append((await client.get(FAULTS, "a-past")).metadata.resource_version)
        finally:
            await server.stop()
    assert versions[0] == versions[1], "the status has not changed"


def test_faults_are_off_unless_the_flag_says_so(tmp_path: Path) -> None:
    assert not parse([], tmp_path).faults
    assert parse(["--faults"], tmp_path).faults


def test_faults_need_one_process(tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match="--faults needs --workers=1"):
        parse(["--faults", "--workers=2"], tmp_path)
