"""Result caches are bounded in number and in bytes, and a flood of other objects does not empty them."""

from __future__ import annotations

from steersman.machinery.managed_fields.result_cache import result_cache


def test_a_result_is_found_again_after_a_flood_of_others() -> None:
    results = result_cache()
    results.keep("a", 1, 10)
    for number in range(10_000):
        results.keep(number, number, 1000)
        assert results.count <= 128
        if number % 16 == 0:
            assert results["a"] == 1
    for number in range(100):
        results.keep(number, number, 100_000)
        assert results.weight <= 2 << 20


def test_what_is_large_is_not_kept() -> None:
    results = result_cache()
    results.keep("a", 1, 1 << 20)
    assert results.count == 0
