"""Seats and queues of a priority level."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from steersman.flowcontrol.queue_set import Queuing, Ticket
from steersman.flowcontrol.seat_seconds import SCALE
from tests.example_counts import examples
from tests.flowcontrol.by_hand import Requests

FOUR_QUEUES = Queuing(4, 1, 3)


def test_without_queues_what_finds_no_seat_is_refused() -> None:
    requests = Requests(Queuing(), 2)
    one, _ = requests.seated(), requests.seated()
    assert requests.send() is None
    assert requests.counts.rejected == {"concurrency-limit": 1}
    requests.seats.finish(one)
    requests.seated()


def test_without_a_single_seat_one_request_at_a_time_is_let_in_where_there_are_no_queues() -> None:
    requests = Requests(Queuing(), 0)
    requests.seated()
    assert requests.send() is None


def test_without_a_single_seat_requests_wait_where_there_are_queues() -> None:
    requests = Requests(Queuing(1, 1, 1), 0)
    requests.queued()
    assert requests.send() is None
    assert requests.counts.rejected == {"queue-full": 1}


def test_exempt_requests_are_never_held_back() -> None:
    requests = Requests(Queuing(exempt=True), 0)
    tickets = [requests.seated(initial=3) for _ in range(50)]
    assert requests.seats.seats == 150
    for each in tickets:
        requests.seats.finish(each)
    assert requests.seats.is_idle


def test_a_full_queue_refuses_only_while_no_seat_is_free() -> None:
    requests = Requests(Queuing(1, 1, 1), 1)
    first = requests.seated()
    waiting = requests.queued()
    assert requests.send() is None
    requests.seats.finish(first)
    assert waiting.started >= 0


def test_requests_of_a_flow_get_their_seats_in_the_order_they_came() -> None:
    requests = Requests(Queuing(1, 1, 10), 1)
    told: list[int] = []
    first = requests.seated()
    waiting = [requests.queued() for _ in range(5)]
    for number, ticket in enumerate(waiting):
        ticket.decided = lambda number=number: told.append(number)
    requests.seats.finish(first)
    for ticket in waiting:
        assert ticket.started >= 0
        requests.seats.finish(ticket)
    assert told == [0, 1, 2, 3, 4]


def test_a_flow_with_few_requests_does_not_wait_behind_one_with_many() -> None:
    requests = Requests(Queuing(64, 1, 100), 1)
    now = requests.seated("many")
    for _ in range(50):
        requests.queued("many")
    requests.hand.move(0.01)
    late = requests.queued("few")
    served = 0
    while late.started < 0:
        requests.hand.move(0.01)
        requests.seats.finish(now)
        (now,) = [each for queue in requests.seats.queues.values() for each in queue.executing]
        served += 1
    assert served <= 2


def test_two_flows_with_as_many_requests_take_turns() -> None:
    requests = Requests(Queuing(64, 1, 100), 1)
    now = requests.seated("a")
    for _ in range(10):
        requests.queued("a")
        requests.queued("b")
    order = []
    for _ in range(20):
        requests.hand.move(0.005)
        requests.seats.finish(now)
        (now,) = [each for queue in requests.seats.queues.values() for each in queue.executing]
        order.append(now.about)
    assert {order[at : at + 2].count("a") for at in range(0, 20, 2)} == {1}


def test_a_request_that_took_longer_than_guessed_is_charged_for_it() -> None:
    requests = Requests(Queuing(64, 1, 100), 1)
    now = requests.seated("snail")
    for _ in range(6):
        requests.queued("snail")
        requests.queued("hare")
    order = []
    for _ in range(12):
        requests.hand.move(0.3 if now.about == "snail" else 0.003)
        requests.seats.finish(now)
        (now,) = [each for queue in requests.seats.queues.values() for each in queue.executing]
        order.append(now.about)
    assert order[:6] == ["hare"] * 6


def test_a_wide_request_waits_until_there_are_seats_and_nobody_passes_it() -> None:
    requests = Requests(Queuing(1, 1, 10), 4)
    tickets = [requests.seated() for _ in range(3)]
    wide = requests.queued(initial=3)
    narrow = requests.queued()
    requests.seats.finish(tickets[0])
    assert wide.started < 0
    assert narrow.started < 0
    assert requests.counts.unaccommodated > 0
    requests.seats.finish(tickets[1])
    assert wide.started >= 0
    assert narrow.started < 0
    requests.seats.finish(tickets[2])
    assert narrow.started >= 0


def test_a_request_wider_than_all_seats_is_let_in_when_it_is_alone() -> None:
    requests = Requests(Queuing(1, 1, 10), 2)
    one = requests.seated()
    wide = requests.queued(initial=5)
    requests.seats.finish(one)
    assert wide.started >= 0
    assert requests.seats.seats == 5


def test_seats_linger_after_the_answer_of_a_write_that_many_watch() -> None:
    requests = Requests(Queuing(1, 1, 10), 2)
    write = requests.seated(final=2, linger=0.01)
    assert requests.seats.seats == 2
    requests.seats.finish(write)
    assert requests.seats.executing == 0
    assert requests.seats.seats == 2
    waiting = requests.queued()
    requests.hand.move(0.009)
    assert waiting.started < 0
    requests.hand.move(0.002)
    assert waiting.started >= 0


def test_effects_that_need_more_seats_than_there_are_take_longer() -> None:
    requests = Requests(Queuing(1, 1, 10), 2)
    write = requests.send(final=8, linger=0.005)
    assert write is not None
    assert write.started >= 0
    assert (write.final, write.width) == (2, 2)
    assert abs(write.linger - 0.02) < 1e-9


def test_who_has_waited_in_vain_leaves_the_queue() -> None:
    requests = Requests(Queuing(1, 1, 10), 1)
    first = requests.seated()
    in_vain, after = requests.queued(), requests.queued()
    assert requests.seats.give_up(in_vain)
    assert not requests.seats.give_up(in_vain)
    assert requests.counts.rejected == {"time-out": 1}
    requests.seats.finish(first)
    assert after.started >= 0
    assert not requests.seats.give_up(after)


def test_more_seats_let_those_in_who_wait() -> None:
    requests = Requests(FOUR_QUEUES, 1)
    requests.seated()
    waiting = [requests.queued(), requests.queued()]
    requests.seats.configure(FOUR_QUEUES, 3)
    assert all(each.started >= 0 for each in waiting)


def test_queues_that_are_not_wanted_any_more_drain_first() -> None:
    requests = Requests(Queuing(2000, 1, 5), 1)
    first = requests.seated("a")
    waiting = requests.queued("a")
    requests.seats.configure(Queuing(), 1)
    assert waiting.started < 0
    requests.seats.finish(first)
    assert waiting.started >= 0
    requests.seats.finish(waiting)
    assert requests.seats.queues == {}


def test_of_ten_million_queues_those_are_there_that_are_used() -> None:
    requests = Requests(Queuing(10_000_000, 2, 5), 100)
    tickets = [requests.seated(str(number)) for number in range(50)]
    assert len(requests.seats.queues) <= 50
    for each in tickets:
        requests.seats.finish(each)
    assert len(requests.seats.queues) <= 1


def test_r_grows_by_the_seat_seconds_that_each_queue_gets() -> None:
    requests = Requests(Queuing(64, 1, 100), 2)
    requests.seated("a")
    requests.hand.move(1)
    requests.seats.settle()
    assert requests.seats.r == SCALE
    for flow in ("a", "b", "b", "b"):
        requests.send(flow)
    requests.hand.move(1)
    requests.seats.settle()
    assert requests.seats.r == 2 * SCALE


def test_time_is_counted_in_the_state_in_which_it_was_spent() -> None:
    requests = Requests(Queuing(1, 1, 10), 1)
    requests.hand.move(1)
    ticket = requests.seated()
    requests.queued()
    requests.hand.move(2)
    requests.seats.finish(ticket)
    requests.hand.move(4)
    requests.seats.settle()
    assert requests.seats.seconds_by_state == {(0, 0, 0, 0): 1.0, (1, 1, 1, 1): 2.0, (1, 1, 0, 0): 4.0}


class AnyOrder(RuleBasedStateMachine):
    """For any order of events: seats are never exceeded, nothing is lost, and no request waits while a seat is free."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = Requests(Queuing(8, 2, 4), 5)
        self.open: list[Ticket] = []
        self.flows: dict[str, list[Ticket]] = {}

    @rule(flow=st.sampled_from("abcd"), initial=st.integers(1, 3), final=st.integers(0, 4))
    def send(self, flow: str, initial: int, final: int) -> None:
        ticket = self.requests.send(flow, initial, final, 0.01 if final else 0.0)
        if ticket is not None:
            self.open.append(ticket)

    @rule(at=st.integers(0, 100))
    def finish(self, at: int) -> None:
        seated = [each for each in self.open if each.started >= 0]
        if seated:
            ticket = seated[at % len(seated)]
            self.requests.seats.finish(ticket)
            self.open.remove(ticket)

    @rule(at=st.integers(0, 100))
    def give_up(self, at: int) -> None:
        waiting = [each for each in self.open if each.started < 0]
        if waiting:
            ticket = waiting[at % len(waiting)]
            assert self.requests.seats.give_up(ticket)
            self.open.remove(ticket)

    @rule(seconds=st.sampled_from([0.001, 0.005, 0.02, 1.0]))
    def wait(self, seconds: float) -> None:
        self.requests.hand.move(seconds)

    @rule(queues=st.sampled_from([0, 1, 8, 16]), limit=st.integers(0, 8))
    def configure(self, queues: int, limit: int) -> None:
        if queues:
            self.requests.seats.configure(Queuing(queues, min(2, queues), 4), limit)

    @invariant()
    def what_is_counted_is_what_is_there(self) -> None:
        seats = self.requests.seats
        waiting = [each for each in self.open if each.started < 0]
        executing = [each for each in self.open if each.started >= 0]
        assert seats.waiting == len(waiting) == self.requests.counts.queued
        assert seats.executing == len(executing) == self.requests.counts.executing
        assert seats.seats >= sum(each.width for each in executing)
        assert seats.seats_waiting == sum(each.width for each in waiting)
        assert sum(len(queue.waiting) for queue in seats.queues.values()) == len(waiting)

    @invariant()
    def a_queue_is_in_the_order_in_which_requests_came(self) -> None:
        for queue in self.requests.seats.queues.values():
            came = [each.arrived for each in queue.waiting]
            assert came == sorted(came)

    @invariant()
    def nobody_waits_where_there_is_nobody_else(self) -> None:
        seats = self.requests.seats
        if seats.waiting and seats.limit and not seats.seats:
            raise AssertionError("all seats are free")

    def teardown(self) -> None:
        """Every request gets a seat in the end."""
        self.requests.seats.configure(Queuing(8, 2, 4), 5)
        for _ in range(len(self.open) + 1):
            for ticket in [each for each in self.open if each.started >= 0]:
                self.requests.seats.finish(ticket)
                self.open.remove(ticket)
            self.requests.hand.move(0.1)
        assert not self.open
        assert self.requests.seats.is_idle
        assert self.requests.seats.seats == 0


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=examples(60), stateful_step_count=60, deadline=None)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), min_size=1, max_size=60), st.integers(1, 6))
def test_seats_are_exceeded_by_a_request_alone_at_most(widths: list[tuple[int, int]], limit: int) -> None:
    requests = Requests(Queuing(8, 2, 100), limit)
    for initial, flow in widths:
        requests.send(str(flow), initial)
        assert requests.seats.seats <= limit or requests.seats.executing == 1
