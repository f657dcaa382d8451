"""Log lines about slow requests, as k8s.io/utils/trace prints them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import pytest

from steersman.server.slow_requests import SlowRequests
from steersman.testing import Client
from steersman.tracing.readers import Readers
from steersman.tracing.trace import COMPONENT, OWN, Step, Trace

FIELDS = (("audit-id", "id"), ("verb", "metricsVerb"))


class Recorded:
    """A trace with given times, in seconds from its start; binary fractions stay exact on every clock."""

    def __init__(self, readers: Readers) -> None:
        trace = readers.begin("POST", {})
        assert trace is not None
        self.trace: Trace = trace
        self._readers = readers

    def step(self, parent: Step | None, name: str, began: float, ended: float, scope: str = COMPONENT) -> Step:
        made = self.trace.open(parent or self.trace.root, name, {}, FIELDS, scope=scope)
        assert made is not None
        made.began, made.ended = self.trace.began + began, self.trace.began + ended
        return made

    def event(self, step: Step, name: str, at: float) -> None:
        step.events = [*(step.events or ()), (name, self.trace.began + at, {"len": 5})]

    def logged(self, caplog: pytest.LogCaptureFixture) -> list[str]:
        """End the trace; return the lines without numbers of traces and times of day."""
        self.trace.id, self.trace.facts = "abc", {"metricsVerb": "POST"}
        self._readers.end(self.trace)
        number = re.compile(r"^Trace\[\d+\]: ?")
        lines = [number.sub("", each.getMessage()) for each in caplog.records if each.name == "steersman.trace"]
        return [re.sub(r"\(\d\d[\w:.\- ]+\)", "(TIME)", each) for each in lines]


@pytest.fixture
def readers(caplog: pytest.LogCaptureFixture) -> Readers:
    caplog.set_level(logging.INFO, logger="steersman.trace")
    found = Readers()
    SlowRequests(found)
    return found


def test_events_that_took_their_share_are_logged(readers: Readers, caplog: pytest.LogCaptureFixture) -> None:
    recorded = Recorded(readers)
    create = recorded.step(None, "Create", 0.0, 0.8125)
    recorded.event(create, "limitedReadBody succeeded", 0.0078125)
    recorded.event(create, "Conversion done", 0.3125)
    recorded.step(create, "Create etcd3", 0.328125, 0.8125)
    assert recorded.logged(caplog) == [
        '"Create" audit-id:abc,verb:POST (TIME) (total time: 812ms):',
        '---"Conversion done" len:5 304ms (TIME)',
        "[812.5ms] [812.5ms] END",
    ]


def test_slow_steps_within_a_slow_one_are_logged_with_their_events(
    readers: Readers, caplog: pytest.LogCaptureFixture
) -> None:
    recorded = Recorded(readers)
    update = recorded.step(None, "Update", 0.0, 2.0)
    own = recorded.step(update, "validation", 0.0, 2.0, OWN)
    stored = recorded.step(own, "GuaranteedUpdate etcd3", 0.25, 1.5)
    recorded.event(stored, "Txn call completed", 1.5)
    assert recorded.logged(caplog) == [
        '"Update" audit-id:abc,verb:POST (TIME) (total time: 2000ms):',
        '["GuaranteedUpdate etcd3" audit-id:abc,verb:POST 1250ms (TIME)',
        ' ---"Txn call completed" len:5 1250ms (TIME)]',
        "[2s] [2s] END",
    ]


def test_a_slow_step_of_a_fast_one_is_logged_by_itself(readers: Readers, caplog: pytest.LogCaptureFixture) -> None:
    recorded = Recorded(readers)
    get = recorded.step(None, "Get", 0.0, 0.2)
    convert = recorded.step(get, "Call conversion webhook", 0.0, 0.1)
    convert.attributes["object-count"] = 2
    assert recorded.logged(caplog)[0].startswith('"Call conversion webhook" audit-id:abc,verb:POST,object-count:2 ')


def test_fast_requests_and_other_steps_are_not_logged(readers: Readers, caplog: pytest.LogCaptureFixture) -> None:
    recorded = Recorded(readers)
    recorded.step(None, "Get", 0.0, 0.49)
    recorded.step(None, "SerializeObject", 0.0, 4.9)
    recorded.step(None, "delete", 0.0, 4.9, OWN)
    assert recorded.logged(caplog) == []


def test_nothing_is_traced_while_the_level_hides_the_lines(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("steersman.trace")
    caplog.set_level(logging.WARNING, logger=logger.name)
    readers = Readers()
    slow = SlowRequests(readers)
    assert list(readers.registered) == []
    logger.setLevel(logging.INFO)
    slow.follow_level()
    slow.follow_level()
    assert list(readers.registered) == [slow]
    logger.setLevel(logging.WARNING)
    slow.follow_level()
    assert list(readers.registered) == []


async def test_a_server_reads_only_steps_of_handlers_for_the_log(
    start_control_plane: Callable[..., object], client_of: Callable[..., Client], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="steersman.trace")
    client = client_of(await start_control_plane())  # type: ignore[misc]
    assert client.plane.server is not None
    (slow,) = client.plane.server.traces.registered
    assert not slow.reads_filters
    answer = await client.get("/api/v1/namespaces/default")
    assert answer.status == 200
