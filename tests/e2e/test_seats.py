"""Tests that seats of priority levels are released however requests end: thousands are aborted in every state."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import ssl
import struct
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from steersman.testing import WITHOUT_ACCOUNTS, ServerProcess
from tools.hostile.floods import _literal, _text
from tools.hostile.sending import DATA, RST_STREAM, SETTINGS, frame, header_frames

pytestmark = pytest.mark.slow

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
LARGE = json.dumps({"metadata": {"generateName": "z"}, "data": {"a": "b" * 70_000}}).encode()
WATCHES = (f"{CONFIGMAPS}?watch=1", f"{CONFIGMAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
USERS = 4


def block(method: bytes, path: str, token: str) -> bytes:
    sender = _literal(b"authorization", f"Bearer {token}".encode()) + _literal(b"content-type", b"application/json")
    return _literal(b":method", method) + b"\x87\x41\x01a\x04" + _text(path.encode()) + sender


def request(luck: random.Random, stream: int) -> bytes:
    """Return a random request; some have no end."""
    token = f"token-{luck.randrange(USERS)}"
    kind = luck.randrange(5)
    if kind == 0:
        return header_frames(stream, block(b"GET", CONFIGMAPS, token))
    if kind == 1:
        return header_frames(stream, block(b"GET", luck.choice(WATCHES), token))
    if kind == 2:
        return header_frames(stream, block(b"GET", f"/api/v1/namespaces/n{luck.random()}/pods", token))
    posted = header_frames(stream, block(b"POST", f"{CONFIGMAPS}?dryRun=All", token), end_stream=False)
    body = LARGE if kind == 3 else LARGE[: luck.randrange(len(LARGE))]
    for at in range(0, len(body), 16_000):
        posted += frame(DATA, int(kind == 3 and at + 16_000 >= len(body)), stream, body[at : at + 16_000])
    return posted


async def give_up(port: int, context: ssl.SSLContext, luck: random.Random) -> None:
    """Send a connection's requests and reset most of them. The client reads all, reads nothing, or has no window."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    window = luck.choice((0, 65_535, 1 << 20))
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window)))
    writer.write(frame(SETTINGS, 1, 0))
    reading = asyncio.ensure_future(reader.read()) if luck.random() < 0.5 else None
    for stream in range(1, luck.randrange(11, 101), 2):
        writer.write(request(luck, stream))
        if luck.random() < 0.7:
            await asyncio.sleep(luck.choice((0, 0.001, 0.01)))
            writer.write(frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))
    if luck.random() < 0.5:
        writer.close()
    else:
        writer.transport.abort()
    if reading is not None:
        await asyncio.gather(reading, return_exceptions=True)
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def in_use(metrics: str) -> list[str]:
    """Return the metrics of executing and waiting requests, without the request for the metrics."""
    names = (
        "apiserver_flowcontrol_current_executing",
        "apiserver_flowcontrol_current_inqueue",
        "apiserver_longrunning",
    )
    lines = (each for each in metrics.splitlines() if each.startswith(names))
    return [each for each in lines if not each.endswith(" 0") and '"exempt"' not in each]


async def test_every_seat_is_given_back(tmp_path: Path) -> None:
    luck = random.Random(1)
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("".join(f"token-{number},user-{number},{number}\n" for number in range(USERS)))
    tokens.chmod(0o600)
    flags = (
        WITHOUT_ACCOUNTS,
        "--max-requests-inflight=30",
        "--max-mutating-requests-inflight=20",
        f"--token-auth-file={tokens}",
    )
    with ServerProcess(tmp_path / "data", *flags) as server:
        context = ssl.create_default_context(cafile=server.ca)
        context.set_alpn_protocols(["h2"])
        port = urlsplit(server.url).port or 0
        with server.client() as client:
            for number in range(20):
                made = {"metadata": {"name": f"c{number}"}, "data": {"a": "b" * 20_000}}
                assert client.request("POST", CONFIGMAPS, made)[0] == 201
        for _ in range(5):
            connections = (give_up(port, context, luck) for _ in range(20))
            await asyncio.gather(*connections, return_exceptions=True)
        with server.client() as client:
            for _ in range(100):
                left = in_use(client.request("GET", "/metrics")[1].decode())
                if not left:
                    break
                await asyncio.sleep(0.1)
        assert left == []
