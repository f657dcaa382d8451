"""Blocks of the event loop are measured and attributed."""

from __future__ import annotations

import asyncio
import gc
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from steersman.endpoints.request import Request
from steersman.machinery.metrics import Registry
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer
from steersman.net.message import Request as HttpRequest
from steersman.server import loop_watchdog
from steersman.server.loop_watchdog import LoopWatchdog

THRESHOLD = 0.02
HELD = 0.3


def hold_the_loop() -> None:
    until = time.monotonic() + HELD
    while time.monotonic() < until:
        pass


def hold_for(request: Request) -> None:
    hold_the_loop()


def value(registry: Registry, series: str) -> float:
    match = re.search(rf"^{re.escape(series)} (\S+)$", "".join(registry.expose()), re.MULTILINE)
    return float(match[1]) if match else 0.0


@pytest.fixture
def registry() -> Registry:
    return Registry()


async def watched(registry: Registry, work: Callable[[], object]) -> None:
    watchdog = LoopWatchdog(THRESHOLD, registry)
    watchdog.start()
    try:
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(work)
        beat = asyncio.Event()
        asyncio.get_running_loop().call_later(2 * THRESHOLD, beat.set)
        await beat.wait()
    finally:
        watchdog.stop()


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_a_held_loop_is_told_with_how_long_and_what_held_it(
    registry: Registry, caplog: pytest.LogCaptureFixture, new_loop: Any
) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(watched(registry, hold_the_loop))
    [line] = [each for each in caplog.messages if "was held" in each and "hold_the_loop" in each]
    match = re.match(r"the loop was held for (\d+\.\d+) s \(its thread ran (\d+\.\d+) s", line)
    assert match
    assert float(match[1]) > HELD / 2
    assert float(match[2]) > 0
    assert "hold_the_loop:" in line
    where = f"{__name__}.hold_the_loop"
    assert value(registry, f'steersman_loop_held_seconds_count{{where="{where}"}}') == 1
    assert value(registry, "steersman_loop_held_max_seconds") > HELD / 2


async def test_a_hold_that_is_too_short_to_be_told_is_remembered(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    watchdog = LoopWatchdog(THRESHOLD, registry, 3600.0)
    watchdog.start()
    try:
        await asyncio.sleep(0)
        hold_the_loop()
        await asyncio.sleep(2 * THRESHOLD)
    finally:
        watchdog.stop()
    [hold] = [each for each in watchdog.holds() if each.where.endswith("hold_the_loop")]
    assert hold.times == 1
    assert hold.seconds > HELD / 2
    assert "hold_the_loop:" in hold.stack
    assert not caplog.messages
    assert value(registry, "steersman_loop_held_max_seconds") == 0


async def test_the_request_is_named_without_what_it_carries(
    registry: Registry, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = Headers.from_pairs([("authorization", "Bearer secret")])
    http = HttpRequest("GET", "/api/v1/\npods", "labelSelector=secret", headers, EMPTY_BODY, Peer())
    # frames of the package are looked at for the request
    monkeypatch.setitem(hold_for.__globals__, "__name__", "steersman.tests")
    await watched(registry, lambda: hold_for(Request(http)))
    assert any(r"by GET /api/v1/\npods of nobody yet" in each for each in caplog.messages), caplog.messages
    assert "secret" not in caplog.text


async def test_a_collection_of_garbage_is_told_apart(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    many = [[number] for number in range(300_000)]

    def collect() -> None:
        gc.collect()
        hold_the_loop()

    await watched(registry, collect)
    [line] = [each for each in caplog.messages if "was held" in each and "hold_the_loop" in each]
    match = re.search(r"collecting garbage (\d+\.\d+) s", line)
    assert match
    assert float(match[1]) > 0, f"{len(many)} lists are gone through in no time"
    assert "server.loop_watchdog" not in line


async def test_a_hold_that_does_not_end_is_told_meanwhile(
    registry: Registry, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_watchdog, "STILL", HELD / 5)
    await watched(registry, hold_the_loop)
    [line] = [each for each in caplog.messages if "by now" in each]
    assert re.match(r"the loop is held for \d+\.\d+ s by now by no request: in \S*hold_the_loop: ", line)


async def test_after_the_end_nothing_is_watched(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    await watched(registry, lambda: None)
    caplog.clear()
    hold_the_loop()
    await asyncio.sleep(0)
    assert not caplog.messages
