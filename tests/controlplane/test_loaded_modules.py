"""Modules that a start does not load: their code is for requests and configurations that most servers never see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from steersman.controlplane.admission import PLUGINS, Optional

PROGRAM = """
import asyncio, gc, sys
from pathlib import Path
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options

async def start():
    plane = ControlPlane(Options(data_dir=Path(sys.argv[1]), secure_port=0, bind_address="127.0.0.1"))
    await plane.start()
    print(*sys.modules)
    await plane.stop()

asyncio.run(start())
"""
SIGNING = """
import asyncio, sys, threading
from steersman.testing import Environment

async def start():
    async with Environment() as environment:
        client, here = environment.client(), threading.get_ident()
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        assert (await client.post(accounts, {"metadata": {"name": "a"}})).status == 201
        on_loop, in_threads = [], []

        def note(event, arguments):
            if event == "import":
                (on_loop if threading.get_ident() == here else in_threads).append(arguments[0])

        sys.addaudithook(note)
        assert (await client.post(f"{accounts}/a/token", {"spec": {}})).status == 201
        print(*on_loop)
        print(*in_threads)

asyncio.run(start())
"""
ABSENT = (
    "steersman.cel",
    "steersman.controlplane.auditing",
    "steersman.controlplane.optional_plugins",
    "steersman.controlplane.workers",
    "steersman.endpoints.filters.faults",
    "steersman.faults",
    "steersman.openapi.service",
    "steersman.schema",
    "steersman.storage.etcd",
    "html",
    "shutil",
    "_strptime",
    *(f"steersman.admission_plugins.{each.module}" for each in PLUGINS if isinstance(each, Optional)),
)


@pytest.mark.slow
def test_a_start_loads_nothing_that_few_servers_need(tmp_path: Path) -> None:
    for _ in range(2):  # the first one makes keys, which loads more
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=120, check=True
        )
    loaded = set(done.stdout.split())
    assert "steersman.server.server" in loaded
    assert sorted(loaded & set(ABSENT)) == []


@pytest.mark.slow
def test_the_first_token_imports_the_cryptography_in_a_thread() -> None:
    done = subprocess.run([sys.executable, "-c", SIGNING], capture_output=True, text=True, timeout=120, check=True)
    on_loop, in_threads = ({each.partition(".")[0] for each in line.split()} for line in done.stdout.splitlines())
    assert in_threads >= {"joserfc", "cryptography"}
    assert on_loop & {"joserfc", "cryptography"} == set()
