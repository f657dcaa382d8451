"""Bounded caches keep frequently used entries and stay within their limits."""

from __future__ import annotations

import random

import pytest

from steersman.work.bounded_cache import BoundedCache, BoundedSet


def test_what_is_kept_is_found_and_what_is_not_is_none() -> None:
    cache: BoundedCache[str, int] = BoundedCache(4)
    cache.keep("a", 0)
    assert (cache["a"], cache["b"]) == (0, None)
    cache.keep("a", 1)
    assert (cache["a"], cache.count) == (1, 1)
    cache.forget()
    assert (cache["a"], cache.count) == (None, 0)


@pytest.mark.parametrize("most", [1, 2, 3, 10, 256])
def test_there_are_never_more_than_most(most: int) -> None:
    cache: BoundedCache[int, int] = BoundedCache(most)
    for number in range(5 * most):
        cache.keep(number, number)
        assert cache[number] == number
        assert cache.count <= max(most, 2)
    assert cache.count > most // 3


def test_what_is_asked_for_survives_a_flood_of_what_is_not() -> None:
    cache: BoundedCache[str, int] = BoundedCache(100)
    for number in range(10):
        cache.keep(f"mine {number}", number)
    for number in range(10_000):
        cache.keep(f"flood {number}", number)
        if number % 20 == 0:
            assert [cache[f"mine {mine}"] for mine in range(10)] == list(range(10))
    assert cache.count <= 100


def test_bytes_are_bounded_too_and_what_is_large_is_not_kept() -> None:
    cache: BoundedCache[int, int] = BoundedCache(1000, max_bytes=1000, max_entry_bytes=125)
    for number in range(500):
        cache.keep(number, number, 100)
        assert cache[number] == number
        assert cache.weight <= 1000
    assert cache.count >= 5
    cache.keep(-1, -1, 126)
    assert cache[-1] is None


def test_one_that_needs_more_than_half_of_the_room_is_alone() -> None:
    cache: BoundedCache[str, int] = BoundedCache(10, max_bytes=100)
    cache.keep("a", 1, 30)
    cache.keep("b", 2, 90)
    assert (cache["a"], cache["b"], cache.weight) == (None, 2, 90)
    cache.keep("c", 3, 60)
    assert (cache["b"], cache["c"], cache.weight) == (None, 3, 60)
    cache.keep("d", 4, 10)
    assert (cache["c"], cache["d"], cache.weight) == (3, 4, 70)
    cache.keep("e", 5, 101)
    assert cache["e"] is None


def test_any_order_of_use_keeps_the_bounds_and_the_values() -> None:
    chance = random.Random(1)
    cache: BoundedCache[int, int] = BoundedCache(20, max_bytes=400)
    weights: dict[int, int] = {}
    for _ in range(20_000):
        key = chance.randrange(60)
        if chance.random() < 0.5:
            weights[key] = chance.randrange(300)
            cache.keep(key, key * 1000 + weights[key], weights[key])
        found = cache[key]
        assert found in (None, key * 1000 + weights.get(key, -1))
        kept = [*cache, *cache._old]
        assert len(kept) == len(set(kept)) == cache.count <= 20
        assert cache.weight == sum(cache._weights.values()) + sum(cache._old_weights.values()) <= 400


def test_a_set_keeps_what_is_asked_for() -> None:
    known: BoundedSet[str] = BoundedSet(100)
    known.keep("mine")
    for number in range(10_000):
        known.keep(f"flood {number}")
        if number % 40 == 0:
            assert known.has("mine")
        assert known.count <= 100
    assert not known.has("flood 1")


def test_a_set_loses_what_is_discarded_in_either_generation() -> None:
    known: BoundedSet[int] = BoundedSet(100)
    for number in range(60):
        known.keep(number)
    for number in (1, 59):
        assert known.has(number)
        known.discard(number)
        assert not known.has(number)
    assert known.count == 58
