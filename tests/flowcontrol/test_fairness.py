"""Sharing of the server's seats by levels and flow schemas."""

from __future__ import annotations

import pytest

from steersman.api.flowcontrol.v1 import FlowSchema
from steersman.flowcontrol.bootstrap_configuration import mandatory, suggested
from steersman.flowcontrol.fairness import Fairness, Flow, Schema
from steersman.flowcontrol.matching import Matcher
from steersman.flowcontrol.queue_set import Ticket
from steersman.machinery.identity.action import Action
from tests.flowcontrol.by_hand import Hand
from tests.flowcontrol.configurations import level, schema

AUTHENTICATED = ("system:authenticated",)
LIST_PODS = Action("list", "", "v1", "pods", "", "default")


def compiled(schemas: list[FlowSchema]) -> list[Schema]:
    return [Schema(each, Matcher(each.spec)) for each in schemas]


class Server:
    """A Fairness with a manual clock and some seats."""

    def __init__(self, seats: int = 600) -> None:
        self.hand = Hand()
        self.fairness = Fairness(seats, clock=self.hand.clock, wall_clock=self.hand.clock, later=self.hand.later)
        self.reloads = 0
        self.fairness.reload = self._reload

    def _reload(self) -> None:
        self.reloads += 1

    def flow(self, user: str, action: Action = LIST_PODS, groups: tuple[str, ...] = AUTHENTICATED) -> Flow:
        return self.fairness.flow(user, groups, action, None)

    def send(self, user: str, count: int = 1) -> list[Ticket]:
        flow = self.flow(user)
        sent = (flow.seats.start(flow.counts, flow.hand, None, self.hand.now) for _ in range(count))
        return [ticket for ticket in sent if ticket is not None]

    def seats(self) -> dict[str, int]:
        return {name: level.current for name, level in self.fairness.levels.items()}


def test_without_a_configuration_there_are_the_mandatory_levels_and_schemas() -> None:
    server = Server()
    assert set(server.fairness.levels) == {"exempt", "catch-all"}
    assert server.flow("alice").schema == "catch-all"
    assert server.flow("root", groups=("system:masters",)).is_exempt
    assert dict(server.flow("alice").headers) == {
        "x-kubernetes-pf-flowschema-uid": "",
        "x-kubernetes-pf-prioritylevel-uid": "",
    }
    assert server.flow("nobody", groups=()).schema == "catch-all"


def test_what_is_shipped_shares_600_seats_as_upstream() -> None:
    server = Server()
    (levels, schemas), (more_levels, more_schemas) = mandatory(), suggested()
    server.fairness.digest(levels + more_levels, compiled(schemas + more_schemas))
    limits = {name: (level.limits.nominal, level.limits.least) for name, level in server.fairness.levels.items()}
    assert limits == {
        "exempt": (0, 0),
        "catch-all": (13, 13),
        "system": (74, 50),
        "node-high": (98, 73),
        "leader-election": (25, 25),
        "workload-high": (98, 49),
        "workload-low": (245, 24),
        "global-default": (49, 24),
    }
    assert sum(server.seats().values()) == pytest.approx(602, abs=4)


def test_the_schema_of_the_lowest_precedence_counts_and_of_equals_the_first_by_name() -> None:
    server = Server()
    server.fairness.digest(
        [level("a"), level("b")],
        [schema("z", "a", 500, "alice"), schema("y", "b", 500, "alice"), schema("x", "a", 600, "alice")],
    )
    assert server.flow("alice").schema == "y"
    assert server.flow("bob").schema == "catch-all"


def test_flows_of_a_schema_are_told_apart_as_it_says() -> None:
    server = Server()
    server.fairness.digest(
        [level("a", queues=64), level("b", queues=64)],
        [schema("users", "a", 500, "*", "ByUser"), schema("spaces", "b", 400, "system", "ByNamespace")],
    )
    assert server.flow("alice").distinguisher == "alice"
    assert server.flow("system").distinguisher == "default"
    assert server.flow("alice").hand != server.flow("bob").hand


def test_a_schema_whose_level_is_not_there_is_not_used_and_that_is_said() -> None:
    server = Server()
    dangling = schema("d", "nowhere", 300, "alice")
    (found,) = server.fairness.digest([], [dangling])
    assert (found.schema, found.condition.status, found.condition.reason) == ("d", "True", "NotFound")
    assert found.condition.message == (
        'This FlowSchema references the PriorityLevelConfiguration object named "nowhere" but there is no such object'
    )
    assert server.flow("alice").schema == "catch-all"
    dangling.schema.status.conditions.append(found.condition)
    assert server.fairness.digest([], [dangling]) == []
    (found,) = server.fairness.digest([level("nowhere")], [dangling])
    assert (found.condition.status, found.condition.reason) == ("False", "Found")
    assert server.flow("alice").schema == "d"


def test_a_level_whose_spec_contradicts_itself_counts_as_not_there() -> None:
    server = Server()
    broken = level("broken")
    broken.spec.type = "Exempt"
    (found,) = server.fairness.digest([broken], [schema("s", "broken", 300, "alice")])
    assert found.condition.reason == "NotFound"
    assert "broken" not in server.fairness.levels


def test_a_level_that_is_gone_stays_until_its_requests_are_over() -> None:
    server = Server()
    server.fairness.digest([level("a")], [schema("s", "a", 300, "alice")])
    flow = server.flow("alice")
    (ticket,) = server.send("alice")
    server.fairness.digest([], [schema("s", "a", 300, "alice")])
    assert server.fairness.levels["a"].is_quiescing
    assert server.flow("alice").schema == "catch-all"
    flow.seats.finish(ticket)
    server.fairness.left(flow)
    assert server.reloads == 1
    server.fairness.digest([], [])
    assert "a" not in server.fairness.levels


def test_a_level_that_comes_back_keeps_its_requests() -> None:
    server = Server()
    server.fairness.digest([level("a")], [])
    kept = server.fairness.levels["a"]
    server.fairness.digest([level("a", 20)], [])
    assert server.fairness.levels["a"] is kept
    assert kept.configuration.spec.limited is not None
    assert kept.configuration.spec.limited.nominal_concurrency_shares == 20


def test_a_busy_level_borrows_what_others_lend_and_gives_it_back() -> None:
    server = Server(100)
    server.fairness.digest(
        [level("busy", 10), level("idle", 10, lendablePercent=90), level("catch-all", 0)],
        [schema("b", "busy", 300, "alice"), schema("i", "idle", 300, "bob")],
    )
    assert {name: each.limits.nominal for name, each in server.fairness.levels.items()}["busy"] == 50
    tickets = server.send("alice", 200)
    server.hand.move(10)
    server.fairness.share_out()
    lent = server.seats()
    assert lent["busy"] > 80
    assert lent["idle"] >= 5
    for ticket in tickets:
        server.flow("alice").seats.finish(ticket)
    for _ in range(60):
        server.send("bob", 40)
        server.hand.move(10)
        server.fairness.share_out()
    assert server.seats()["idle"] > lent["idle"]


def test_a_level_borrows_no_more_than_it_may() -> None:
    server = Server(100)
    server.fairness.digest(
        [level("busy", 10, borrowingLimitPercent=0), level("idle", 10, lendablePercent=90), level("catch-all", 0)],
        [schema("b", "busy", 300, "alice")],
    )
    for _ in range(10):
        server.send("alice", 200)
        server.hand.move(10)
        server.fairness.share_out()
    assert server.seats()["busy"] == 50


def test_what_is_remembered_of_flows_is_bounded() -> None:
    server = Server()
    for number in range(20_000):
        server.flow(f"user-{number}")
    assert 4096 <= server.fairness.flows.count <= 8192
    server.fairness.flow("alice", AUTHENTICATED, Action("get"), "/" + "x" * 10_000)
    assert all(key[-1] is None for key in server.fairness.flows)


def test_what_is_remembered_of_flows_is_bounded_whatever_a_request_says() -> None:
    server = Server()
    long = "x" * 4096
    for action in (
        Action("list", "", "v1", long, "", "default"),
        Action("list", "", "v1", "pods", long, "default"),
        Action("list", "", "v1", "pods", "", long),
        Action("list", long, "v1", "pods", "", "default"),
        Action(long, "", "v1", "pods", "", "default"),
    ):
        assert server.flow("alice", action).schema == "catch-all"
    server.flow(long)
    server.flow("alice", groups=(*AUTHENTICATED, long))
    server.flow("alice", groups=tuple(f"group-{number}" for number in range(65)))
    server.fairness.flow("alice", AUTHENTICATED, LIST_PODS, f"/{long}")
    assert not server.fairness.flows
    server.flow("alice")
    assert len(server.fairness.flows) == 1
