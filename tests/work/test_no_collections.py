"""Garbage collection is off during a start, and restored afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from steersman.work.no_collections import no_collections


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    was = gc.isenabled()
    yield
    (gc.enable if was else gc.disable)()


@pytest.mark.parametrize("before", [True, False])
def test_collections_are_off_meanwhile_and_then_as_before(before: bool) -> None:
    (gc.enable if before else gc.disable)()
    with no_collections():
        assert not gc.isenabled()
    assert gc.isenabled() == before


def test_a_start_that_fails_leaves_them_on() -> None:
    gc.enable()
    with pytest.raises(OSError, match="no room"), no_collections():
        raise OSError("no room")
    assert gc.isenabled()


def test_who_enables_them_in_between_keeps_them() -> None:
    gc.enable()
    with no_collections():
        gc.enable()
        assert gc.isenabled()
    assert gc.isenabled()


def test_objects_of_imports_are_excluded_from_later_collections() -> None:
    gc.enable()
    before = gc.get_freeze_count()
    try:
        with no_collections(freeze=True):
            made: list[list[int]] = [[] for _ in range(1000)]
        assert gc.get_freeze_count() - before >= len(made)
        assert gc.isenabled()
    finally:
        gc.unfreeze()
