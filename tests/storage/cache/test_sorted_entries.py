"""Sorted entries, their snapshots and kept past states, compared with plain dictionaries."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.storage.cache import past_states, sorted_entries
from steersman.storage.cache.entry import Entry
from steersman.storage.cache.past_states import PastStates
from steersman.storage.cache.sorted_entries import Shared, SortedEntries

KEYS = st.integers(0, 60).map(lambda number: f"/{'ab'[number % 2]}/{number:02}")


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> object:
    """Chunks so small that a few entries are many."""
    patch = pytest.MonkeyPatch()
    patch.setattr(sorted_entries, "CHUNK", 4)
    patch.setattr(sorted_entries, "FEW", 2)
    patch.setattr(sorted_entries, "COPIED", 6)
    yield
    patch.undo()


def entry(key: str, revision: int) -> Entry:
    return Entry(key, b"%d" % revision, revision)


def told(entries: Sequence[Entry]) -> list[tuple[str, int]]:
    return [(each.key, each.revision) for each in entries]


def expected(model: dict[str, int], prefix: str, start: str, limit: int) -> tuple[list[tuple[str, int]], bool]:
    found = sorted((key, revision) for key, revision in model.items() if key.startswith(prefix) and key >= start)
    return (found[:limit], len(found) > limit) if limit else (found, False)


@given(
    st.lists(st.tuples(st.sampled_from(["put", "discard", "fork", "list"]), KEYS), max_size=150),
    st.sampled_from(["/", "/a/", "/b/", "/c/"]),
    st.one_of(st.just(""), KEYS),
    st.integers(0, 9),
)
def test_what_is_given_is_what_is_there_and_stays_so(
    steps: list[tuple[str, str]], prefix: str, start: str, limit: int
) -> None:
    entries, model = SortedEntries(), dict[str, int]()
    given_out: list[tuple[Sequence[Entry], list[tuple[str, int]]]] = []
    forks: list[tuple[SortedEntries, dict[str, int]]] = []
    for number, (step, key) in enumerate(steps, 1):
        if step == "put":
            entries.put(entry(key, number))
            model[key] = number
        elif step == "discard":
            entries.discard(key)
            model.pop(key, None)
        elif step == "fork":
            forks.append((entries.fork(), model.copy()))
        else:
            given_out.append((entries.range("/")[0], expected(model, "/", "", 0)[0]))
    for some, there in ((entries, model), *forks):
        assert len(some) == len(there)
        found, more = some.range(prefix, start, limit)
        assert (told(found), more) == expected(there, prefix, start, limit)
        assert some.count(prefix, start) == len(expected(there, prefix, start, 0)[0])
    for listed, as_listed in given_out:
        assert told(listed) == as_listed


@given(st.integers(0, 40), st.integers(-45, 45), st.integers(-45, 45))
def test_what_is_shared_is_a_sequence(size: int, start: int, stop: int) -> None:
    entries = SortedEntries()
    entries.append([entry(f"/{number:02}", number) for number in range(size)])
    found, as_list = entries.range("/")[0], list(range(size))
    assert isinstance(found, Shared) or size <= 8
    assert [each.revision for each in found[start:stop]] == as_list[start:stop]
    assert [each.revision for each in found[start:stop:3]] == as_list[start:stop:3]
    assert [found[at].revision for at in range(-size, size)] == as_list * 2
    with pytest.raises(IndexError):
        found[size]


def test_entries_are_appended_in_chunks_and_taken_out_again() -> None:
    entries = SortedEntries()
    for page in range(5):
        entries.append([entry(f"/{page}/{number}", 1) for number in range(7)])
    assert len(entries) == 35
    taken = 0
    while chunk := entries.take_chunk():
        taken += len(chunk)
    assert (taken, len(entries)) == (35, 0)


def test_small_chunks_are_joined() -> None:
    entries = SortedEntries()
    entries.append([entry(f"/{number:04}", 1) for number in range(400)])
    for number in range(400):
        if number % 40:
            entries.discard(f"/{number:04}")
    assert len(entries) == 10
    assert len(entries._chunks) < 8


def test_the_past_is_kept_until_too_much_of_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_states, "BYTES_LIMIT", 100)
    present, past = SortedEntries(), PastStates()
    present.put(entry("/a", 1))
    past.keep(1, present)
    present.put(entry("/a", 2))
    past.replaced(60)
    past.keep(2, present)
    kept = past.at(1)
    assert kept is not None
    assert told(kept.range("/")[0]) == [("/a", 1)]
    past.replaced(60)
    assert past.at(1) is None
    assert past.at(2) is not None
    past.replaced(60)
    assert past.at(2) is None


def test_few_revisions_are_kept() -> None:
    present, past = SortedEntries(), PastStates()
    for revision in range(1, past_states.MOST + 1):
        past.keep(revision, present)
    assert past.at(1) is not None
    past.keep(100, present)
    assert past.at(1) is not None
    assert past.at(2) is None


def test_what_changed_since_is_undone() -> None:
    present = SortedEntries()
    for key in ("/a", "/b"):
        present.put(entry(key, 9))
    past = present.fork()
    past.undo([("/a", entry("/a", 3)), ("/b", None), ("/c", entry("/c", 4)), ("/d", None)])
    assert told(past.range("/")[0]) == [("/a", 3), ("/c", 4)]
    assert told(present.range("/")[0]) == [("/a", 9), ("/b", 9)]
