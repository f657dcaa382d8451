"""Logs of simulated containers."""

from __future__ import annotations

import asyncio
import re

import pytest

from steersman.api.core.v1 import ContainerState, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Pod
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.resources import PODS
from steersman.machinery.errors.status import StatusError
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.server import logs
from steersman.nodes.server.logs import LogOptions, NoLogs, run_of
from tests.controllers.waiting import eventually
from tests.nodes.server.requests import Node

COUNT = "i=0; while true; do echo line $i; i=$((i+1)); sleep 0.1; done"


async def test_a_log_has_what_the_command_prints(node: Node) -> None:
    await node.pod("p", "sh", "-c", "echo one; echo two >&2; printf three; sleep infinity")
    assert await node.logs("p") == "one\ntwo\nthree\n"
    assert await node.logs("p", "tailLines=1") == "three\n"
    assert await node.logs("p", "limitBytes=5") == "one\nt"
    assert await node.logs("p", "tailLines=0") == ""
    stamped = await node.logs("p", "timestamps=true&tailLines=1")
    assert re.match(r"\.\d{9}Z three", stamped[19:])


async def test_a_log_has_what_was_printed_in_the_second_of_the_end(node: Node) -> None:
    await node.pod("p", "sh", "-c", "sleep 0.3; echo done; sleep 1000", annotations={f"{PREFIX}run-for": "400ms"})

    async def has_ended() -> bool:
        status = (await node.client.get(PODS, "p", "default")).status.container_statuses[0]
        return status.restart_count > 0 or status.state.running is None

    await eventually(has_ended)
    assert await node.logs("p", "previous=true" if await _runs(node) else "") == "done\n"


async def _runs(node: Node) -> bool:
    return (await node.client.get(PODS, "p", "default")).status.container_statuses[0].state.running is not None


async def test_a_log_says_what_annotations_say(node: Node) -> None:
    await node.pod("p", annotations={"simulation.steersman.dev/logs": "a\nb"})
    assert await node.logs("p") == "a\nb\n"
    await node.pod("q")
    assert await node.logs("q") == "x is simulated: container c has started\n"


def test_the_last_of_endless_lines_are_kept_and_others_run_meanwhile() -> None:
    said = "\n".join(f"line {number}" for number in range(200))
    printed = logs.annotated(said, every=0.1, started_at=1000.0, now=1_000_000.0)
    made, in_a_row, longest = 0, 0, 0
    for each in printed:
        if isinstance(each, float):
            if each > 1_000_000.0:
                break
            in_a_row = 0
        else:
            made, in_a_row = made + 1, in_a_row + 1
            longest = max(longest, in_a_row)
    assert logs.MOST_LINES <= made <= logs.MOST_LINES + 2 * 200
    assert longest <= 64


async def test_logs_that_are_being_answered_share_the_memory_of_their_namespace(node: Node) -> None:
    lines = "\n".join(f"{number:04} {'x' * 95}" for number in range(1000))
    await node.pod("p", annotations={f"{PREFIX}logs": lines})
    share = node.cluster.servers.containers.shares.for_namespace("default")
    whole = 64 << 20

    async def is_reserved() -> bool:
        return share.reserve(whole - 50_000)  # requests of the pod's start may have memory still

    await eventually(is_reserved)
    answer = await node.request("/containerLogs/default/p/c")
    found = (await answer.read(1 << 20)).decode().splitlines()
    assert 150 < len(found) < 500
    assert found[-1].startswith("0999 ")
    await answer.close()
    share.release(whole - 50_000)
    answer = await node.request("/containerLogs/default/p/c?follow=true")  # the client does not read it
    await answer.close()

    async def is_given_back() -> bool:
        if is_whole := share.reserve(whole):
            share.release(whole)
        return is_whole

    await eventually(is_given_back)


async def wait_for_log(node: Node, text: str) -> None:
    """Wait until the log of the pod `p` begins with a text."""

    async def has_it() -> bool:
        return (await node.logs("p")).startswith(text)

    await eventually(has_it)


async def test_a_log_can_be_followed_until_the_container_ends(node: Node) -> None:
    pod = await node.pod("p", "sh", "-c", f"{COUNT}")
    following = asyncio.create_task(node.logs("p", "follow=true&sinceSeconds=1000"))
    await wait_for_log(node, "line 0\nline 1\n")
    assert not following.done()
    out, _, said = await node.execute("p", "kill", "1")
    assert (out, said["status"]) == ("", "Success")
    async with asyncio.timeout(10):
        assert (await following).startswith("line 0\nline 1\n")
    before = await node.logs("p", "previous=true&tailLines=1")
    assert before.startswith("line ")
    assert pod.metadata.name == "p"


async def test_a_log_of_what_is_silent_ends_at_once(node: Node) -> None:
    await node.pod("p", "sh", "-c", "echo one; while true; do sleep 3600; done")
    await node.pod(
        "q",
        annotations={
            f"simulation.steersman.dev/{key}": value for key, value in {"logs": "\n", "log-every": "1s"}.items()
        },
    )
    async with asyncio.timeout(5):
        assert (await node.logs("p"), await node.logs("q")) == ("one\n", "")


async def test_others_run_while_a_silent_log_is_followed(node: Node) -> None:
    await node.pod("p", "sh", "-c", "echo one; sleep 0.2; echo two; while true; do sleep 0.3; done")
    following = asyncio.create_task(node.logs("p", "follow=true"))
    async with asyncio.timeout(10):
        await wait_for_log(node, "one\ntwo\n")
        await node.execute("p", "kill", "1")
        assert await following == "one\ntwo\n"


async def test_what_is_no_log_is_refused(node: Node) -> None:
    await node.pod("p")
    with pytest.raises(StatusError) as refused:
        await node.logs("p", "previous=true")
    assert str(refused.value) == 'previous terminated container "c" in pod "p" not found'
    answer = await node.request("/containerLogs/default/p/nope")
    assert (answer.status, await answer.read(1000)) == (404, b'container "nope" not found in pod "p"')
    answer = await node.request("/containerLogs/default/nope/c")
    assert (answer.status, await answer.read(1000)) == (404, b'pod "nope" does not exist')
    answer = await node.request("/containerLogs/default/p/c?tailLines=x")
    assert answer.status == 400


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (None, "is not available"),
        (
            ContainerStatus(state=ContainerState(waiting=ContainerStateWaiting(reason="PodInitializing"))),
            "is waiting to start: PodInitializing",
        ),
        (
            ContainerStatus(state=ContainerState(waiting=ContainerStateWaiting(reason="ErrImagePull"))),
            "is waiting to start: image can't be pulled",
        ),
        (
            ContainerStatus(state=ContainerState(waiting=ContainerStateWaiting(reason="ImagePullBackOff"))),
            "is waiting to start: trying and failing to pull image",
        ),
        (ContainerStatus(), "is waiting to start - no logs yet"),
        (ContainerStatus(state=ContainerState(terminated=ContainerStateTerminated())), "is terminated"),
    ],
)
def test_why_there_is_no_log(status: ContainerStatus | None, text: str) -> None:
    with pytest.raises(NoLogs) as why:
        run_of(Pod(metadata=ObjectMeta(name="p")), "c", status, previous=False)
    assert str(why.value) == f'container "c" in pod "p" {text}'


def test_options_of_a_log() -> None:
    found = LogOptions.parse({"sinceSeconds": ["10"], "follow": ["true"], "tailLines": ["3"]}, 100.0)
    assert found == LogOptions(follow=True, tail=3, since=90.0)
    assert LogOptions.parse({"sinceTime": ["1970-01-01T00:01:00Z"]}, 100.0).since == 60
    with pytest.raises(ValueError, match="limitBytes"):
        LogOptions.parse({"limitBytes": ["-1"]}, 0)


def test_a_number_may_take_all_bits_and_as_seconds_overflows_as_durations_of_go_do() -> None:
    largest = str(2**63 - 1)
    found = LogOptions.parse({"sinceSeconds": [largest], "tailLines": [largest], "limitBytes": [largest]}, 100.0)
    assert found == LogOptions(tail=2**63 - 1, since=101.0, limit=2**63 - 1)
    with pytest.raises(ValueError, match="tailLines"):
        LogOptions.parse({"tailLines": [str(2**63)]}, 100.0)
