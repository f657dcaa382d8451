"""Collectors of spans that hang or refuse: the server goes on, and does not wait for them at its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from steersman.server import trace_export
from steersman.testing import Environment

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("grpc")

LAST: Final = 0.1
"""Seconds for the last spans in this test."""
PATIENCE: Final = 15.0
"""Seconds in which a server ends on a busy machine: half of what the SDK waits for its collector."""


@pytest.fixture(params=["hangs", "refuses"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a collector that accepts connections and says nothing, or of none at all."""
    with closing(socket.socket()) as collector:
        collector.bind(("127.0.0.1", 0))
        if request.param == "hangs":
            collector.listen()
        yield collector.getsockname()[1]


async def test_a_server_does_not_wait_for_its_collector(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_export, "LAST_SECONDS", LAST)
    file = tmp_path / "tracing.yaml"
    file.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
        f"endpoint: 127.0.0.1:{port}\nsamplingRatePerMillion: 1000000\n"
    )
    environment = Environment(tracing_config_file=str(file))
    await environment.__aenter__()
    for _ in range(600):  # more than the SDK sends at once
        assert (await environment.client().get("/version")).status == 200
    async with asyncio.timeout(PATIENCE):
        await environment.__aexit__(None, None, None)
