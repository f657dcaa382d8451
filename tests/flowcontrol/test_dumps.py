"""Content and limits of the dumps."""

from __future__ import annotations

import asyncio

from steersman.api.flowcontrol.v1 import FlowSchema
from steersman.flowcontrol.dumps import RequestDescription, collect_rows, queue_rows, request_rows, table
from steersman.flowcontrol.fairness import Fairness, Flow, Schema
from steersman.flowcontrol.matching import Matcher
from steersman.machinery.identity.action import Action
from tests.flowcontrol.by_hand import Hand
from tests.flowcontrol.configurations import level, schema

MANY = 500


def fairness_of(hand: Hand) -> Fairness:
    return Fairness(600, clock=hand.clock, wall_clock=hand.clock, later=hand.later)


def waiting(fairness: Fairness, path: str, now: float) -> Flow:
    """Return a flow with many requests, one of them for this path."""
    made: FlowSchema = schema("s", "a", 300, "alice").schema
    fairness.digest([level("a")], [Schema(made, Matcher(made.spec))])
    flow = fairness.flow("alice", (), Action("list", "", "v1", "pods", "", "default"), None)
    for number in range(MANY):
        flow.seats.start(flow.counts, flow.hand, "/short" if number else path, now)
    return flow


async def test_one_long_path_does_not_make_every_line_as_long() -> None:
    hand = Hand()
    fairness = fairness_of(hand)
    flow = waiting(fairness, "/long" + "x" * (1 << 20), hand.now)
    rows = request_rows(
        fairness,
        lambda path: RequestDescription(flow, ("alice", "get", path, "", "", "v1", "pods", "")),
        lambda moment: "now",
        with_details=True,
    )
    text = table(await collect_rows(rows))
    lines = text.splitlines()
    assert 50 < len(lines) <= MANY + 1
    assert len(text) < 1000 * len(lines)
    shown = next(line for line in lines if "/long" in line)
    assert "xxx..., " in shown
    assert max(map(len, lines)) < 2048


async def test_requests_that_end_while_a_dump_is_taken_are_left_out() -> None:
    hand = Hand()
    fairness = fairness_of(hand)
    flow = waiting(fairness, "/first", hand.now)
    described: list[str | None] = []

    def describe(path: str | None) -> RequestDescription:
        described.append(path)
        return RequestDescription(flow, ("alice", "get", "", "", "", "v1", "pods", ""))

    rows = request_rows(fairness, describe, lambda moment: "now", with_details=True)
    assert next(rows)  # the names of the columns
    assert next(rows)
    under_way = tuple(flow.seats.without_queue)
    assert len(under_way) > 1
    for ticket in under_way:
        flow.seats.finish(ticket)
    assert list(rows) == []
    assert len(described) == 1
    assert None not in described


async def test_thousands_of_rows_are_taken_in_turns_while_requests_come_and_go() -> None:
    hand = Hand()
    fairness = fairness_of(hand)
    fairness.digest([level(f"l{number}", queues=10_000) for number in range(3)], [])
    seats = fairness.levels["l0"].seats
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            ticket = seats.start(counts, (turns % 50,), None, hand.now)
            turns += 1
            await asyncio.sleep(0)
            if ticket is not None:
                seats.finish(ticket)

    counts = fairness.levels["l0"].counts_of("s")
    beside = asyncio.get_running_loop().create_task(others())
    rows = await collect_rows(queue_rows(fairness))
    beside.cancel()
    assert len(rows) == 20_000
    assert turns > 5
