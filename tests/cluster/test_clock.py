"""The clock of a running cluster: it stops, runs faster and leaps, and everything in the cluster follows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from steersman.api.batch.v1 import CronJob, CronJobSpec, JobSpec, JobTemplateSpec
from steersman.api.core.v1 import Container, Node, Pod, PodSpec, PodTemplateSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.client.resources import CRON_JOBS, JOBS, NODES, PODS
from steersman.cluster.clock import FURTHEST, ClockState, ClusterClock, OutOfRange
from steersman.cluster.clock_file import ClockFile
from steersman.cluster.clock_paths import PATH
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.controlplane.options import Options
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.work import simulated_time, upkeep
from tests.controllers.waiting import eventually


@pytest_asyncio.fixture
async def clock() -> AsyncIterator[ClusterClock]:
    async def settle() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    clock = ClusterClock(settle)
    clock.start()
    try:
        yield clock
    finally:
        await clock.stop()


async def leapt(clock: ClusterClock) -> None:
    async with asyncio.timeout(5):
        while clock.is_moving:  # noqa: ASYNC110 - the clock has no waiters
            await asyncio.sleep(0.001)


async def test_a_leap_runs_what_falls_due_at_its_time(clock: ClusterClock) -> None:
    before, began, seen = times.unix_now(), simulated_time.time(), list[tuple[str, int]]()

    async def tick(name: str, every: float) -> None:
        while True:
            await simulated_time.sleep(every)
            seen.append((name, round(simulated_time.time() - began)))

    tasks = [asyncio.create_task(tick("a", 40)), asyncio.create_task(tick("b", 61))]
    await asyncio.sleep(0)
    clock.advance(125)
    await leapt(clock)
    assert seen == [("a", 40), ("b", 61), ("a", 80), ("a", 120), ("b", 122)]
    assert 124 < times.unix_now() - before < 130
    assert 124 < clock.ahead < 126
    for each in tasks:
        each.cancel()


async def test_real_waits_do_not_leap(clock: ClusterClock) -> None:
    waiting = asyncio.create_task(asyncio.sleep(60))
    measured = times.monotonic()
    clock.advance(7200)
    await leapt(clock)
    assert not waiting.done()
    assert times.monotonic() - measured < 60
    waiting.cancel()


async def test_rounds_of_upkeep_are_skipped_in_a_leap(clock: ClusterClock) -> None:
    rounds = 0

    async def beat() -> None:
        nonlocal rounds
        while True:
            await upkeep.sleep(10)
            rounds += 1

    task = asyncio.create_task(beat())
    await asyncio.sleep(0)
    clock.advance(86400)
    await leapt(clock)
    assert 5 < rounds < 30
    task.cancel()


async def test_a_leap_in_which_something_happens_for_ever_ends_and_tells_what_it_missed() -> None:
    rounds = 0

    async def settle() -> None:
        nonlocal rounds
        rounds += 1
        await asyncio.sleep(0)

    async def work_for_ever() -> None:
        while True:
            await simulated_time.sleep(0.001)

    clock = ClusterClock(settle, longest_leap=0.05)
    clock.start()
    task = asyncio.create_task(work_for_ever())
    try:
        await asyncio.sleep(0)
        clock.advance(86400)
        await leapt(clock)
        assert rounds > 1
        assert clock.state.advancing_seconds == 0
        assert abs(clock.state.missed_seconds + clock.ahead - 86400) < 5
        clock.advance(0.5)
        assert clock.state.missed_seconds == 0, "it was about the leap before"
        await leapt(clock)
    finally:
        task.cancel()
        await clock.stop()


async def test_a_stopped_clock_lets_short_waits_end_and_no_others(clock: ClusterClock) -> None:
    earlier = asyncio.create_task(simulated_time.sleep(0.01))
    long = asyncio.create_task(simulated_time.sleep(3))
    await asyncio.sleep(0)
    clock.set_speed(0)
    await simulated_time.sleep(0.01)
    await earlier
    stamped = times.unix_now()
    await asyncio.sleep(0.01)
    assert times.unix_now() == stamped
    assert not long.done()
    clock.advance(5)
    await long
    await leapt(clock)
    assert clock.state.speed == 0
    clock.set_speed(1)
    await leapt(clock)
    assert 4.8 < clock.ahead < 5.1


async def test_a_faster_clock_passes_more_seconds(clock: ClusterClock) -> None:
    clock.set_speed(1000)
    async with asyncio.timeout(5), simulated_time.timeout(30):
        with pytest.raises(TimeoutError):
            async with simulated_time.timeout(20):
                await asyncio.Event().wait()
    clock.set_speed(1)
    await leapt(clock)
    assert 15 < clock.ahead < 1000


async def test_bounds_of_the_clock(clock: ClusterClock) -> None:
    for wrong in (-1, 3601, float("nan")):
        with pytest.raises(OutOfRange):
            clock.set_speed(wrong)
    for wrong in (-1, FURTHEST + 1, float("inf")):
        with pytest.raises(OutOfRange):
            clock.advance(wrong)
    with pytest.raises(OutOfRange, match="cannot go back"):
        clock.advance(-0.5)
    clock.advance(FURTHEST - 100)
    with pytest.raises(OutOfRange, match="at most 180 days ahead"):
        clock.advance(200)
    with pytest.raises(OutOfRange):
        clock.change(0, FURTHEST + 1)
    assert (clock.state.speed, clock.state.advancing_seconds > 1000) == (1, True), "a refused change changes nothing"
    clock.set_speed(1)
    await leapt(clock)
    assert clock.ahead < FURTHEST / 2, "a new speed ends the leap"


async def test_the_next_start_goes_on_with_the_time(tmp_path: Path) -> None:
    async def start() -> Cluster:
        cluster = Cluster(Options(data_dir=tmp_path, listen=False), Configuration(()), owns_process=True)
        await cluster.start()
        return cluster

    async def has_leapt() -> bool:
        return not (await state(client)).advancing_seconds

    for ahead in (3600, 7200):
        cluster = await start()
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
        await state(client, b'{"advance": "1h"}')
        await eventually(has_leapt)
        await cluster.stop()
        assert abs(times.unix_now() - time.time()) < 1
        assert abs(msgspec.json.decode((tmp_path / "clock.json").read_bytes())["aheadSeconds"] - ahead) < 5
    (tmp_path / "clock.json").write_text('{"aheadSeconds": 1e99}')
    assert ClockFile(tmp_path).read() == 0


async def test_cancelled_timers_do_not_stay(clock: ClusterClock) -> None:
    for _ in range(10_000):
        clock.call_at(clock.time() + 1000, print).cancel()
    assert clock.waiting < 1000


# In a cluster


@pytest_asyncio.fixture
async def cluster(tmp_path: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(Options(data_dir=tmp_path, storage="memory", listen=False), owns_process=True)
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.stop()


async def state(client: Client, change: bytes = b"") -> ClockState:
    answer = await client.request("POST" if change else "GET", PATH, change)
    return msgspec.json.decode(answer, type=ClockState)


async def test_a_cluster_follows_its_clock_through_a_leap(cluster: Cluster) -> None:
    client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
    template = PodTemplateSpec(
        spec=PodSpec(containers=[Container(name="c", image="busybox", command=["true"])], restart_policy="Never")
    )
    spec = CronJobSpec(schedule="*/30 * * * *", job_template=JobTemplateSpec(spec=JobSpec(template=template)))
    await client.create(CRON_JOBS, CronJob(metadata=ObjectMeta(name="half-hourly", namespace="default"), spec=spec))
    await cluster.settle(5)
    await state(client, b'{"advance": "2h"}')

    async def has_leapt() -> bool:
        return not (await state(client)).advancing_seconds

    await eventually(has_leapt)
    assert len((await client.list(JOBS, "default")).items) >= 3, "successful jobs are limited to three"
    (node,) = (await client.list(NODES)).items
    assert ready(node).status == "True"
    assert times.unix(ready(node).last_transition_time or "") < times.unix_now() - 7000, (
        "it has not been lost meanwhile"
    )
    pod = Pod(
        metadata=ObjectMeta(name="new", namespace="default"), spec=PodSpec(containers=[Container(name="c", image="i")])
    )
    made = await client.create(PODS, pod)
    assert abs(times.unix(made.metadata.creation_timestamp or "") - times.unix_now()) < 5


def ready(node: Node) -> Any:
    return next(each for each in node.status.conditions if each.type == "Ready")


async def test_the_path_answers_as_others_do(cluster: Cluster) -> None:
    admin = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")
    for wrong in (b"{", b'{"advance": "2"}', b'{"speed": -1}', b'{"speeds": 1}', b'{"advance": "1000000h"}'):
        with pytest.raises(StatusError) as refused:
            await state(admin, wrong)
        assert refused.value.code == 400
    with pytest.raises(StatusError) as refused:
        await state(admin, b" " * 2000)
    assert refused.value.code == 413
    with pytest.raises(StatusError) as refused:
        await admin.request("DELETE", PATH)
    assert refused.value.code == 405
    with pytest.raises(StatusError) as refused:
        await state(cluster.client(UserInfo("nobody", groups=("system:authenticated",)), "tests"))
    assert refused.value.code == 403
    assert (await state(admin, b'{"speed": 0}')).speed == 0
    assert (await state(admin, b'{"speed": 1}')).speed == 1
