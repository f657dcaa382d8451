"""Log lines that requests can cause are few."""

from __future__ import annotations

import logging

import pytest

from steersman.machinery.limited_log import LimitedLog


class Clock:
    now = 5.0

    def __call__(self) -> float:
        return self.now


def test_a_key_has_one_line_a_minute_and_the_next_tells_how_many_were_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    log = LimitedLog(logging.getLogger("steersman.test"), clock)
    for _ in range(1000):
        log.warning("a", "%s failed", "a")
    log.warning("b", "%s failed", "b")
    clock.now += 60
    log.warning("a", "%s failed", "a")
    clock.now += 60
    log.warning("a", "%s failed", "a")
    assert caplog.messages == ["a failed", "b failed", "a failed (999 more in the last 60 s)", "a failed"]


def test_keys_are_bounded_in_number_and_length() -> None:
    log = LimitedLog(logging.getLogger("steersman.test"), Clock())
    for number in range(10_000):
        log.warning(f"{number}" * 1000, "failed")
    assert 128 <= log.seen.count <= 256
    assert max(map(len, log.seen)) <= 512
