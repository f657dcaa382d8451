"""Log lines about slow requests, as k8s.io/utils/trace prints them."""

from __future__ import annotations

import logging
import re

import pytest

from steersman.server.slow_requests import SlowRequests
from steersman.tracing.readers import Readers
from steersman.tracing.trace import COMPONENT, END, OWN, StepKind, Trace
from tests.tracing.answers import Answer

FIELDS = (("audit-id", "id"), ("verb", "metricsVerb"))


class Recorded:
    """A trace with given times, in seconds from its start; binary fractions stay exact on every clock."""

    def __init__(self, readers: Readers) -> None:
        trace = readers.begin({})
        assert trace is not None
        self.trace: Trace = trace
        self._readers = readers

    def begin(self, name: str, at: float, scope: str = COMPONENT, attributes: dict[str, int] | None = None) -> None:
        self.trace.marks += (StepKind(name, scope, FIELDS), self.trace.began + at, attributes)

    def end(self, at: float) -> None:
        self.trace.marks += (END, self.trace.began + at, None)

    def event(self, name: str, at: float) -> None:
        self.trace.marks += (name, self.trace.began + at, {"len": 5})

    def logged(self, caplog: pytest.LogCaptureFixture) -> list[str]:
        """End the trace; return the lines without numbers of traces and times of day."""
        self.trace.answered = Answer({"id": "abc", "metricsVerb": "POST"})
        self.trace.ended = self.trace.began + 10.0
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
    recorded.begin("Create", 0.0)
    recorded.event("limitedReadBody succeeded", 0.0078125)
    recorded.event("Conversion done", 0.3125)
    recorded.begin("Create etcd3", 0.328125)
    recorded.end(0.8125)
    recorded.end(0.8125)
    assert recorded.logged(caplog) == [
        '"Create" audit-id:abc,verb:POST (TIME) (total time: 812ms):',
        '---"Conversion done" len:5 304ms (TIME)',
        "[812.5ms] [812.5ms] END",
    ]


def test_slow_steps_within_a_slow_one_are_logged_with_their_events(
    readers: Readers, caplog: pytest.LogCaptureFixture
) -> None:
    recorded = Recorded(readers)
    recorded.begin("Update", 0.0)
    recorded.begin("validation", 0.0, OWN)
    recorded.begin("GuaranteedUpdate etcd3", 0.25)
    recorded.event("Txn call completed", 1.5)
    recorded.end(1.5)
    recorded.end(2.0)
    recorded.end(2.0)
    assert recorded.logged(caplog) == [
        '"Update" audit-id:abc,verb:POST (TIME) (total time: 2000ms):',
        '["GuaranteedUpdate etcd3" audit-id:abc,verb:POST 1250ms (TIME)',
        ' ---"Txn call completed" len:5 1250ms (TIME)]',
        "[2s] [2s] END",
    ]


def test_a_slow_step_of_a_fast_one_is_logged_by_itself(readers: Readers, caplog: pytest.LogCaptureFixture) -> None:
    recorded = Recorded(readers)
    recorded.begin("Get", 0.0)
    recorded.begin("Call conversion webhook", 0.0, attributes={"object-count": 2})
    recorded.end(0.1)
    recorded.end(0.2)
    assert recorded.logged(caplog)[0].startswith('"Call conversion webhook" audit-id:abc,verb:POST,object-count:2 ')


def test_fast_requests_and_other_steps_are_not_logged(readers: Readers, caplog: pytest.LogCaptureFixture) -> None:
    recorded = Recorded(readers)
    for name, ended, scope in (("Get", 0.49, COMPONENT), ("SerializeObject", 4.9, COMPONENT), ("delete", 4.9, OWN)):
        recorded.begin(name, 0.0, scope)
        recorded.end(ended)
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
