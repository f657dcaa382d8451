"""Observers of requests."""

from __future__ import annotations

from pathlib import Path

from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import Options
from steersman.endpoints.request import Request
from steersman.net.in_process import InProcessClient


async def test_each_request_is_told_with_its_code_those_that_are_refused_too(keys_folder: Path) -> None:
    told: list[tuple[str, str, int]] = []

    def observe(request: Request, code: int, seconds: float) -> None:
        assert 0 <= seconds < 30
        told.append((request.info.action.verb, request.path, code))

    plane = ControlPlane(Options(data_dir=keys_folder, storage="memory", listen=False), observe=observe)
    await plane.start()
    try:
        assert plane.server is not None
        client = InProcessClient(plane.server.handler)
        for target, headers in (
            ("/readyz", []),
            ("/api/v1/pods", []),
            ("/api/v1/pods?watch=1", [("authorization", "Bearer nobodys")]),
        ):
            async with await client.request("GET", target, headers):
                pass
    finally:
        await plane.stop()
    assert told == [("get", "/readyz", 200), ("list", "/api/v1/pods", 403), ("watch", "/api/v1/pods", 401)]
