"""What is remembered is bounded in number and in bytes."""

from __future__ import annotations

from steersman.machinery.managed_fields.remembered import Remembered


def test_a_result_is_found_again() -> None:
    results: Remembered[str, int] = Remembered()
    results.keep("a", 1, 10)
    assert (results.get("a"), results.get("b"), results.get(None)) == (1, None, None)


def test_all_that_was_kept_makes_room() -> None:
    results: Remembered[int, int] = Remembered()
    for number in range(129):
        results.keep(number, number, 1)
    assert len(results) == 1
    for number in range(100):
        results.keep(number, number, 100_000)
    assert 1 <= len(results) <= 21


def test_what_is_large_is_not_kept() -> None:
    results: Remembered[str, int] = Remembered()
    results.keep("a", 1, 1 << 20)
    assert len(results) == 0
