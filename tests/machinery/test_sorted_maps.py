"""Large maps are encoded in order in time that grows with them, in whatever order they come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.machinery.codec.serializer import deep_copy, encode, encode_sorted, to_plain
from steersman.machinery.errors.field import go_json
from steersman.machinery.sorted_maps import presorted, presorted_json, with_sorted_maps
from steersman.testing import Environment

ORDERS: dict[str, Callable[[list[str]], list[str]]] = {
    "the last first": lambda keys: ["zz", *keys],
    "the first last": lambda keys: [*keys, "0"],
    "backwards, with the last last": lambda keys: [*reversed(keys), "zz"],
}


def keys_of(count: int) -> list[str]:
    return [f"k{number:06d}" for number in range(count)]


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of the work in its own thread, in which large work runs."""
    took: list[float] = []

    def measured() -> None:
        began = time.thread_time()
        work()
        took.append(time.thread_time() - began)

    thread = threading.Thread(target=measured)
    thread.start()
    thread.join()
    return took[0]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("write", [encode, encode_sorted, to_plain, go_json])
def test_time_grows_with_the_keys_and_not_with_their_square(write: Callable[[Any], object], order: str) -> None:
    def least(count: int) -> float:
        maps = [dict.fromkeys(ORDERS[order](keys_of(count)), "v") for _ in range(3)]
        return min(seconds(partial(write, {"data": found})) for found in maps)

    few, many = least(3_000), least(24_000)
    assert many < 30 * max(few, 0.001)  # eight times as many; the square would be 64 times


def test_copies_are_made_without_sorting() -> None:
    config_map = ConfigMap(data=dict.fromkeys(ORDERS["the last first"](keys_of(20_000)), "v"))
    assert seconds(lambda: deep_copy(config_map)) < 0.1
    assert deep_copy(config_map) == config_map


def test_maps_are_sorted_wherever_they_are() -> None:
    class Inner(msgspec.Struct, frozen=True):
        found: dict[str, int]

    class Outer(msgspec.Struct):
        inner: list[Inner]
        plain: dict[str, Any]

    large = {f"{number}": number for number in reversed(range(1000))}
    outer = Outer([Inner(dict(large))], {"b": dict(large), "a": [dict(large)]})
    assert with_sorted_maps(outer) is outer
    for each in (outer.inner[0].found, outer.plain["b"], outer.plain["a"][0]):
        assert list(each) == sorted(large)
        assert each == large
    assert list(outer.plain) == ["b", "a"]


def test_maps_are_found_in_members_of_any_type() -> None:
    class Few(msgspec.Struct):
        name: str
        found: dict[str, int] | None = None

    class Many(msgspec.Struct):
        count: int
        first: Few | None
        others: list[Few]
        free: Any
        note: str | None = None

    large = {f"{number}": number for number in reversed(range(1000))}
    value = Many(1, Few("a", dict(large)), [Few("b"), Few("c", dict(large))], Few("d", dict(large)))
    with_sorted_maps(value)
    assert value.first is not None
    for each in (value.first, value.others[1], value.free):
        assert list(each.found or ()) == sorted(large)
    assert value.others[0].found is None


def test_the_loop_takes_values_as_they_are() -> None:
    large = {f"{number}": number for number in reversed(range(1000))}
    assert presorted(large) is large


def test_only_json_of_many_members_is_visited_in_a_thread() -> None:
    def prepared(members: int) -> dict[str, dict[str, int]]:
        value = {"found": {f"{number:03d}": number for number in reversed(range(members))}}
        thread = threading.Thread(target=presorted_json, args=(value,))
        thread.start()
        thread.join()
        return value

    few, many = prepared(500), prepared(1000)
    assert list(few["found"]) == sorted(few["found"], reverse=True)
    assert list(many["found"]) == sorted(many["found"])


async def test_an_object_of_many_keys_is_taken_in_whatever_order_they_are() -> None:
    """The key that comes first in order is last: msgspec's own sort calls itself for each key and ends the process."""
    async with Environment() as environment:
        client = environment.client()
        path = "/api/v1/namespaces/default/configmaps"
        for number, order in enumerate(ORDERS.values()):
            data = dict.fromkeys(order(keys_of(40_000)), "")
            began = time.process_time()
            made = await client.post(path, {"metadata": {"name": f"c{number}"}, "data": data})
            assert made.status == 201
            changed = await client.patch(f"{path}/c{number}", {"data": {"": None, "00": "first"}})
            assert changed.status == 200
            assert time.process_time() - began < 4
            assert list(changed.json()["data"]) == sorted({**data, "00": ""})
