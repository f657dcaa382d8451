"""Faults that go on and off, machines on wires, traced processes, servers' workers."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.chaos import tracing, wires
from tools.chaos.faults import Targets
from tools.chaos.faults.fault import Fault, Pulses, nothing, play
from tools.chaos.keepers import lost
from tools.chaos.servers import Server
from tools.chaos.tracing import Tracer
from tools.chaos.wires import Wires

_SYNCS = """
import os, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
for line in sys.stdin:
    os.write(file, b"x")
    try:
        os.fdatasync(file)
        print("ok", flush=True)
    except OSError as error:
        print(error.errno, flush=True)
"""


async def test_what_needs_a_majority_is_alone() -> None:
    notified: list[str] = []
    enough = asyncio.Event()

    def note(text: str) -> None:
        notified.append(text)
        if len(notified) == 200:
            enough.set()

    makers = {
        "one": lambda: Fault("one", nothing, nothing),
        "other": lambda: Fault("other", nothing, nothing),
        "alone": lambda: Fault("alone", nothing, nothing, is_alone=True),
    }
    playing = asyncio.ensure_future(play(makers, random.Random(1), 0.0001, 0.0001, note))
    await enough.wait()
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    assert any(" and " in each for each in notified)
    assert {each.partition(",")[0] for each in notified if "alone" in each} == {"alone"}


async def test_pulses_end_off() -> None:
    done: list[str] = []
    enough = asyncio.Event()

    async def on() -> None:
        done.append("on")
        if len(done) > 5:
            enough.set()

    async def off() -> None:
        done.append("off")

    pulses = Pulses(on, off, lambda: (0.001, 0.001))
    await pulses.do()
    await enough.wait()
    await pulses.undo()
    assert done == ["on", "off"] * (len(done) // 2)


async def test_pulses_tell_of_a_step_that_failed() -> None:
    done: list[str] = []

    tried = asyncio.Event()

    async def on() -> None:
        tried.set()
        raise OSError("no such wire")

    async def off() -> None:
        done.append("off")

    pulses = Pulses(on, off, lambda: (0.001, 0.001))
    await pulses.do()
    await tried.wait()
    with pytest.raises(OSError, match="no such wire"):
        await pulses.undo()
    assert done == ["off"]


def test_events_that_are_gone_are_found() -> None:
    there = [{"metadata": {"name": "a"}}, {"metadata": {"name": "c"}}]
    assert [each.split()[2] for each in lost(there, ["a", "b", "c"])] == ["b"]


def test_faults_are_those_that_a_server_allows(tmp_path: Path) -> None:
    plain = Targets([Server(0, tmp_path / "a")]).makers(random.Random(1))
    assert set(plain) == {"kill-server", "terminate-server", "stop-server"}
    workers = Targets([Server(0, tmp_path / "b", "--workers=2")]).makers(random.Random(1))
    assert workers.keys() - plain.keys() == {"kill-worker", "stop-worker"}


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that writes and syncs a file for each line that it receives."""
    if why_not := tracing.impossible():
        pytest.skip(why_not)
    with subprocess.Popen(
        [sys.executable, "-c", _SYNCS, str(tmp_path / "file")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert synced(process) == "ok"
        yield process
        process.kill()


def synced(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_syncs_of_a_traced_process_fail_until_it_is_let_go(traced: subprocess.Popen[str]) -> None:
    tracer = Tracer.fail(traced.pid)
    assert synced(traced) == "5"
    tracer.let_go()
    assert synced(traced) == "ok"


def test_syncs_of_a_traced_process_are_slow(traced: subprocess.Popen[str]) -> None:
    tracer = Tracer.slow(traced.pid, 0.2)
    began = time.monotonic()
    assert synced(traced) == "ok"
    assert time.monotonic() - began >= 0.2
    tracer.let_go()


def test_a_traced_process_may_end(traced: subprocess.Popen[str]) -> None:
    tracer = Tracer.slow(traced.pid, 0.2)
    traced.kill()
    tracer.let_go()


@pytest.fixture
def connected() -> Iterator[Wires]:
    if os.geteuid() != 0:
        pytest.skip("namespaces are made by root")
    if why_not := wires.impossible():
        pytest.skip(why_not)
    found = Wires()
    found.open()
    yield found
    found.close()


@pytest.mark.slow
def test_machines_lose_packets_and_find_them_again(connected: Wires) -> None:
    one, other = connected.own_address(), connected.own_address()
    machine = connected.machine("m")
    with socket.create_server((one, 0)) as near, socket.create_server((other, near.getsockname()[1])):
        port = near.getsockname()[1]

        def reaches(address: str) -> bool:
            dials = f"import socket; socket.create_connection(('{address}', {port}), 0.5)"
            return subprocess.run([*machine.under, sys.executable, "-c", dials], capture_output=True).returncode == 0

        assert reaches(one)
        assert reaches(other)
        machine.lose(one)
        assert not reaches(one)
        assert reaches(other)
        machine.find(one)
        assert reaches(one)
        machine.deafen()
        assert not reaches(one)
        machine.undeafen()
        assert reaches(one)
        machine.unplug()
        assert not reaches(other)
        machine.plug()
        assert reaches(other)


@pytest.mark.slow
def test_workers_of_a_server_are_known(tmp_path: Path) -> None:
    with Server(0, tmp_path / "data", "--workers=2") as server:
        before = server.workers()
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        until = time.monotonic() + 30
        while server.workers() == before or len(server.workers()) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
