"""Estimates of the seats that requests take."""

from __future__ import annotations

import pytest

from steersman.api.meta.v1 import ListOptions
from steersman.flowcontrol.estimates import (
    Estimate,
    Stored,
    estimate_list,
    estimate_write,
    most_seats,
)


def _list(options: ListOptions | None, objects: int, average: float = 1_000.0, most: int = 0, **more: bool) -> Estimate:
    more = {"is_watch": False, "is_of_one": False, **more}
    return estimate_list(options, lambda: Stored(objects, average), most, **more)


def test_a_list_takes_a_seat_for_every_100_kb() -> None:
    assert _list(ListOptions(), 0).initial == 1
    assert _list(ListOptions(), 100).initial == 1
    assert _list(ListOptions(), 101).initial == 2
    assert _list(ListOptions(), 100_000).initial == 10  # from the cache it is streamed
    assert _list(ListOptions(limit=500), 100_000).initial == 5
    assert _list(ListOptions(), 100_000, is_of_one=True).initial == 1


def test_a_page_that_is_not_in_the_cache_is_held_as_a_whole() -> None:
    assert _list(ListOptions(continue_="x"), 5_000).initial == 50
    assert _list(ListOptions(continue_="x", limit=100), 5_000, has_selector=True).initial == 25
    assert _list(ListOptions(resource_version="5", limit=1000), 5_000).initial == 10
    assert _list(ListOptions(resource_version="5", resource_version_match="Exact"), 20_000).initial == 100


def test_a_level_bounds_its_requests() -> None:
    assert _list(ListOptions(), 100_000, most=4).initial == 4
    assert _list(None, 5, most=4).initial == 4
    assert most_seats(600, 6) == 90
    assert most_seats(30, 6) == 5
    assert most_seats(3, 8) == 1


def test_a_watch_takes_seats_for_the_objects_it_begins_with() -> None:
    assert _list(ListOptions(), 1_000, is_watch=True).initial == 10
    assert _list(ListOptions(resource_version="0"), 1_000, is_watch=True).initial == 10
    assert _list(ListOptions(resource_version="7"), 1_000, is_watch=True).initial == 1
    assert _list(ListOptions(resource_version="7", send_initial_events=True), 1_000, is_watch=True).initial == 10


def test_lists_of_other_servers_take_one_seat() -> None:
    assert estimate_list(ListOptions(), lambda: None, 0, is_watch=False, is_of_one=False) == Estimate()


def test_a_write_takes_seats_after_its_answer_where_many_watch() -> None:
    assert estimate_write(9, 0) == Estimate()
    assert estimate_write(10, 0) == Estimate(1, 1, 0.005)
    assert estimate_write(95, 0) == Estimate(1, 10, 0.005)
    wide = estimate_write(1000, 0)
    assert wide.final == 10
    assert wide.linger == pytest.approx(0.05)
    narrow = estimate_write(1000, 2)
    assert narrow.final == 2
    assert narrow.linger == pytest.approx(0.25)
