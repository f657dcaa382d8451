"""What the dumps show, and of how much."""

from __future__ import annotations

from steersman.api.flowcontrol.v1 import FlowSchema
from steersman.flowcontrol.dumps import Described, dump_requests
from steersman.flowcontrol.fairness import Flow, Schema
from steersman.flowcontrol.matching import Matcher
from tests.flowcontrol.configurations import level, schema
from tests.flowcontrol.test_fairness import Server

MANY = 500


def waiting(server: Server, path: str) -> Flow:
    """A flow with many requests under way, one of which is of this path."""
    made: FlowSchema = schema("s", "a", 300, "alice").schema
    server.fairness.digest([level("a")], [Schema(made, Matcher(made.spec))])
    flow = server.flow("alice")
    for number in range(MANY):
        flow.seats.start(flow.counts, flow.hand, "/short" if number else path, server.hand.now)
    return flow


def test_one_long_path_does_not_make_every_line_as_long() -> None:
    server = Server()
    flow = waiting(server, "/long" + "x" * (1 << 20))
    text = dump_requests(
        server.fairness, lambda path: Described(flow, ("alice", "get", path, "", "", "v1", "pods", "")),
        lambda moment: "now", with_details=True,
    )  # fmt: skip
    lines = text.splitlines()
    assert 50 < len(lines) <= MANY + 1
    assert len(text) < 1000 * len(lines)
    shown = next(line for line in lines if "/long" in line)
    assert "xxx..., " in shown
    assert max(map(len, lines)) < 2048
