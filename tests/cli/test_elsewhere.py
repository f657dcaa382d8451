"""Commands that work on another server, as processes."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from steersman.cli.main import main
from steersman.client.client import Client
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import LEASES
from steersman.testing import Environment
from tests.controllers.waiting import eventually


@pytest.mark.parametrize("command", ["controllers", "scheduler"])
def test_a_kubeconfig_that_is_not_there_ends_them(command: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [command, "--kubeconfig", str(tmp_path / "none")])
    assert result.exit_code == 1
    assert result.output.startswith("steersman: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "lease"), [("controllers", "kube-controller-manager"), ("scheduler", "kube-scheduler")]
)
async def test_they_work_until_they_are_told_to_stop(command: str, lease: str) -> None:
    async with Environment(listen=True) as environment:
        kubeconfig = environment.kubeconfig()
        client = Client(TLSTransport.from_kubeconfig(kubeconfig), "tests")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "steersman.cli",
            command,
            "--kubeconfig",
            str(kubeconfig),
            "--logging-format=json",
            stderr=asyncio.subprocess.PIPE,
        )

        async def holder() -> str:
            found = (await client.list(LEASES, "kube-system", field_selector=f"metadata.name={lease}")).items
            return (found[0].spec.holder_identity or "") if found else ""

        try:
            assert await eventually(holder, seconds=60)
        finally:
            process.send_signal(signal.SIGTERM)
        _, said = await process.communicate()
        assert process.returncode == 0
        told = [json.loads(line)["msg"] for line in said.decode().splitlines()]
        assert f" works on {environment.url}: process={process.pid} kubeconfig={kubeconfig}" in told[0]
        assert any(each.endswith(f" has acquired the lease kube-system/{lease}") for each in told)
        assert told[-1].startswith("ended, after ")
        assert await holder() == ""
        await client.aclose()
