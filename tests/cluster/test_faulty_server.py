"""Faults of a server without a cluster."""

from __future__ import annotations

from pathlib import Path

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


@pytest.mark.asyncio
async def test_a_server_alone_has_faults(tmp_path: Path) -> None:
    server = FaultyServer(Options(data_dir=tmp_path, storage="memory", listen=False, faults=True))
    await server.start()
    try:
        running = server.plane.server
        assert running is not None
        token = server.plane.token_of(UserInfo("jane", groups=("system:masters",)))
        client = Client(InProcessTransport(running.handler, token), "test")

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
        fault = {"apiVersion": FAULTS.api_version, "kind": "Fault", "metadata": {"name": "teapot"}, "spec": spec}
        await client.apply(FAULTS, "teapot", "", fault)
        await eventually(lambda: has_status("Injecting", 0))
        assert [await create("a"), await create("a")] == [418, 201]
        await eventually(lambda: has_status("Exhausted", 1))
    finally:
        await server.stop()


def test_faults_are_off_unless_the_flag_says_so(tmp_path: Path) -> None:
    assert not parse([], tmp_path).faults
    assert parse(["--faults"], tmp_path).faults


def test_faults_need_one_process(tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match="--faults needs --workers=1"):
        parse(["--faults", "--workers=2"], tmp_path)
