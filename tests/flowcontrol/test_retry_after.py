"""Retry-After values of refused requests."""

from __future__ import annotations

from steersman.flowcontrol.retry_after import LONGEST, RefusedRequests


class _Wall:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_client_comes_again_after_a_second() -> None:
    assert RefusedRequests(_Wall()).note("a") == 1


def test_the_wait_doubles_where_many_are_refused_and_falls_where_few_are() -> None:
    wall = _Wall()
    refused = RefusedRequests(wall)
    longest = 0
    for _ in range(200):
        for _ in range(10):
            longest = max(longest, refused.note("a"))
        wall.now += 1
    assert longest == LONGEST
    assert refused.note("b") == 1
    waits = []
    for _ in range(40):
        wall.now += 60
        waits.append(refused.note("a"))
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] == 1


def test_within_a_second_the_wait_stays() -> None:
    refused = RefusedRequests(_Wall())
    assert {refused.note("a") for _ in range(100)} == {1}
