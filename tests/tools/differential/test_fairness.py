"""Tests of priority and fairness cases: the compared parts of answers, and loads whose result no delay changes."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from steersman.flowcontrol.queue_set import Queuing
from tests.flowcontrol.configurations import level
from tools.differential.fairness import cases
from tools.differential.fairness.loads.borrowing import Seen, lines_of, seen
from tools.differential.fairness.loads.gate import EXTRA, Gate
from tools.differential.fairness.loads.runner import _case, _differences
from tools.differential.fairness.loads.script import (
    FILLING,
    TICK,
    Arrive,
    HangUp,
    Release,
    Rest,
    Script,
    determined,
    outcome,
)
from tools.differential.fairness.loads.wave import SHARES
from tools.differential.fairness.questions import flow_alone
from tools.differential.fairness.series import estimates_alone, limits_alone, limits_of_others
from tools.differential.server import Answer

BLANK = Script(Queuing(), 1, ("ByUser", ""), ("a", "b"), (("u", "v", "w"), ("x",)), ("n0", "n1", "n2"), 0, ())
METRICS = """# HELP apiserver_flowcontrol_nominal_limit_seats ...
apiserver_flowcontrol_nominal_limit_seats{priority_level="system"} 74
apiserver_flowcontrol_nominal_limit_seats{priority_level="case-3-l0"} 5
apiserver_flowcontrol_nominal_limit_seats{priority_level="case-2-l0"} 9
apiserver_flowcontrol_work_estimated_seats_sum{flow_schema="case-3-s0",priority_level="case-3-l0"} 7
apiserver_flowcontrol_work_estimated_seats_sum{flow_schema="case-2-s0",priority_level="case-3-l0"} 8
other{priority_level="system"} 1
"""


def test_every_sort_of_case_comes_up() -> None:
    titles = Counter(cases(Random(number)).title for number in range(100))
    assert set(titles) == {"whose turn it is", "how many seats it takes"}


def test_of_an_answer_its_flow_is_compared() -> None:
    head = {"x-kubernetes-pf-flowschema-uid": "s", "x-kubernetes-pf-prioritylevel-uid": "l", "audit-id": "a"}
    assert flow_alone(Answer(403, {"kind": "Status"}, headers=head)) == Answer(403, {"schema": "s", "level": "l"})


def test_series_of_levels_that_are_gone_are_left_out() -> None:
    answer = Answer(200, METRICS, asked="/metrics?case-3")
    assert limits_alone(answer).body == {"nominal_limit_seats system": 74.0, "nominal_limit_seats case-3-l0": 5.0}
    assert limits_of_others(answer).body == {"nominal_limit_seats system": 74.0}
    assert estimates_alone(answer).body == {"work_estimated_seats_sum case-3-s0": 7.0}


def test_a_load_ends_as_it_has_to() -> None:
    """With one seat and one queue, requests are served in their order, and aborted ones are not served."""
    actions = (Arrive(0, 0, 0), Arrive(0, 1, 0), Arrive(0, 2, 0), HangUp(0), Arrive(1, 0, 0, 1.5), Rest(), Release(0))
    script = replace(BLANK, queuing=Queuing(1, 1, 5), actions=actions)
    assert outcome(script, Random(1), 0.0) == [(1, "seat", 0), (6, "429", 3), (7, "seat", 2)]
    refusing = replace(BLANK, actions=actions[:2])
    assert outcome(refusing, Random(1), 0.0) == [(1, "seat", 0), (2, "429", 1)]


def test_seats_that_are_taken_at_first_come_before_the_first_tick() -> None:
    script = replace(BLANK, queuing=Queuing(1, 1, 5), seats=20, filled=20, actions=(Arrive(0, 0, 0),))
    found = outcome(script, Random(1), 0.05)
    assert found is not None
    assert Counter(tick for tick, _, _ in found) == {0: 20, 2: 1}
    assert FILLING > 20 * 0.015 + TICK


def test_what_would_be_let_in_by_a_hang_up_alone_is_not_determined() -> None:
    """The wide request at the head waits for four seats. Its end alone makes upstream dispatch no other request."""
    actions = (Arrive(0, 0, 2), Arrive(0, 0, 0), HangUp(0))
    script = replace(BLANK, queuing=Queuing(1, 1, 5), seats=28, filled=26, actions=actions)
    assert outcome(script, Random(1), 0.0) is None


@pytest.mark.parametrize("seed", [1, 2])
def test_scripts_are_made_again_by_their_seed_and_do_not_depend_on_small_delays(seed: int) -> None:
    for number in range(len(SHARES)):
        case = _case(seed, number)
        blank = replace(BLANK, queuing=case.queuing, seats=SHARES[case.slot], names=case.schemas, users=case.users)
        (script, expected), (again, _) = (determined(Random(case.name), blank) for _ in range(2))
        assert str(script) == str(again)
        assert all(outcome(script, Random(late), late / 100) == expected for late in range(5))


def test_two_plays_are_compared_with_each_other_and_with_what_was_expected() -> None:
    seat, refused = (1, "seat", 0), (1, "429, again in 2", 0)
    counted: dict[str, float] = {}
    assert not list(_differences([refused], [refused], [(1, "429", 0)], [counted, counted]))
    assert len(list(_differences([seat], [refused], [seat], [counted, counted]))) == 3
    [line] = _differences([seat], [seat], [(2, "seat", 0)], [counted, counted])
    assert "neither" in line
    [line] = _differences([seat], [seat], [seat], [{"dispatched": 1.0}, counted])
    assert line.endswith("dispatched: a 1.0, b 0")


async def test_the_gate_holds_a_request_until_it_is_released() -> None:
    gate = Gate()
    await gate.start()
    came: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    gate.came = came.set_result
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", int(gate.url.rpartition(":")[2]), ssl=tls)
    request = {"uid": "1", "userInfo": {"extra": {EXTRA: ["w1-0"]}}}
    body = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode()
    writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert await came == "w1-0"
    gate.release("w1-0")
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    writer.close()
    await gate.close()


def told(current: int, fraction: float) -> Seen:
    gauges = "\n".join(
        f'apiserver_flowcontrol_{name}{{priority_level="{level}"}} {value}'
        for level, highest, seats in (("own", 12, current), ("catch-all", 0, 1), ("exempt", 1, 1))
        for name, value in (
            ("demand_seats_high_watermark", highest),
            ("demand_seats_smoothed", highest),
            ("current_limit_seats", seats),
        )
    )
    return seen(f"{gauges}\napiserver_flowcontrol_seat_fair_frac {fraction}\n")


def test_seats_that_do_not_follow_of_demands_are_told() -> None:
    levels = [level("own", 9, borrowingLimitPercent=0), level("catch-all", 1)]
    [line] = lines_of(told(8, 0.0), levels, 10)
    assert line.startswith("own: 9 seats follow of")
    assert not list(lines_of(told(9, 0.0), levels, 10))
    [line] = lines_of(told(9, 0.5), levels, 10)
    assert line == "a fair fraction of 0.0 follows, not 0.5"
