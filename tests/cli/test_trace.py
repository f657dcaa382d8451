"""`steersman trace` on a server of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from typing import Any

import pytest

from steersman.testing import Environment

pytestmark = pytest.mark.slow


async def started(environment: Environment, *arguments: str, stdout: int = PIPE) -> Process:
    command = (sys.executable, "-m", "steersman.cli", "trace", "--kubeconfig", str(environment.kubeconfig()))
    return await asyncio.create_subprocess_exec(*command, *arguments, stdout=stdout, stderr=PIPE)


async def ran(environment: Environment, *arguments: str) -> tuple[int | None, str, str]:
    process = await started(environment, *arguments)
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def line_of(process: Process, environment: Environment) -> dict[str, Any]:
    """Return the first line that the command prints about a request which is sent until there is one."""
    assert process.stdout is not None
    reading = asyncio.ensure_future(process.stdout.readline())
    while not reading.done():
        await environment.client().get("/api/v1/namespaces/default")
        await asyncio.wait([reading], timeout=0.05)
    document: dict[str, Any] = json.loads(reading.result())
    return document


async def test_requests_are_printed_until_it_is_interrupted_and_steps_by_id() -> None:
    async with Environment(listen=True) as environment:
        process = await started(environment, "--resource=namespaces", "--verb=get", "-o", "json")
        found = await line_of(process, environment)
        assert (found["path"], found["code"]) == ("/api/v1/namespaces/default", 200)
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert (process.returncode, err) == (0, b"")

        code, out, _ = await ran(environment, found["id"])
        assert code == 0
        assert out.startswith("get namespaces default/default by ")
        assert "authorization" in out
        code, out, _ = await ran(environment, "--recent", "--resource=namespaces")
        assert code == 0
        assert found["id"][-8:] in out
        assert await ran(environment, "unknown-id") == (1, "", "steersman: no request 'unknown-id' is kept\n")


async def test_it_ends_when_the_server_does() -> None:
    environment = Environment(listen=True)
    await environment.start()
    process = await started(environment, "-o", "json")
    await line_of(process, environment)
    await environment.stop()
    _, err = await process.communicate()
    assert (process.returncode, err) == (0, b"the server has ended the stream\n")


async def test_a_closed_pipe_ends_it_without_a_word() -> None:
    async with Environment(listen=True) as environment:
        theirs, ours = os.pipe()
        process = await started(environment, "-o", "json", stdout=ours)
        os.close(ours)
        os.close(theirs)
        while process.returncode is None:
            await environment.client().get("/api/v1/namespaces/default")
            await asyncio.wait([asyncio.ensure_future(process.wait())], timeout=0.05)
        assert process.stderr is not None
        assert await process.stderr.read() == b""
