"""Helpers of the tests of storage: a clock, a recording subscriber, random writes, and the state computed from the log."""

from __future__ import annotations

import random
from collections.abc import Sequence

from steersman.storage.interface import Conflict, Event, KeyExists, KeyValue, Storage


class Clock:
    """A clock that only moves when a test moves it."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Recorder:
    """A subscriber that collects its events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, events: Sequence[Event]) -> None:
        self.events += events

    @property
    def revisions(self) -> list[int]:
        return [event.revision for event in self.events]


async def write_at_random(store: Storage, chance: random.Random, count: int) -> None:
    """Creates, updates and deletes among a few keys, losing a race now and then."""
    for number in range(count):
        key = f"/{chance.choice('kl')}/{chance.randrange(20)}"
        value = f"{number}".encode() * chance.choice([1, 1, 1, 500])
        current = await store.get(key)
        try:
            if current is None:
                await store.create(key, value)
            elif chance.random() < 0.4:
                await store.delete(key, expected_revision=current.mod_revision)
            else:
                await store.update(key, value, expected_revision=current.mod_revision)
        except (KeyExists, Conflict):
            continue


async def check_every_revision(store: Storage, events: Sequence[Event], oldest: int = 1) -> None:
    """Check that the store's state at each revision is the result of replaying the events up to it."""
    state: dict[str, KeyValue] = {}
    for event in [None, *events]:
        if event is not None:
            assert event.previous == state.get(event.key)
            if event.current is None:
                del state[event.key]
            else:
                state[event.key] = event.current
        at = event.revision if event is not None else 1
        if at < oldest:
            continue
        expected = [state[key] for key in sorted(state)]
        assert list((await store.range("", revision=at)).items) == expected
        page = await store.range("/k/", start="/k/15", limit=3, revision=at, count=True)
        wanted = [item for item in expected if "/k/15" <= item.key < "/k0"]
        assert (list(page.items), page.more, page.count) == (wanted[:3], len(wanted) > 3, len(wanted))
        assert await store.get("/k/7", revision=at) == state.get("/k/7")
