"""Every revision that is kept, listed, paged through and watched from: it is the log replayed."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.machinery.errors.status import StatusError
from steersman.rest.bound import bind
from steersman.rest.capabilities import EXACT, ListOptions
from steersman.storage.interface import Event, Storage
from steersman.storage.memory import MemoryStorage
from steersman.storage.sqlite import SQLiteStorage
from steersman.store.store import Store
from tests.example_counts import examples
from tests.store.store_client import CONFIG_MAPS, Events, StoreClient, relabel, selecting

Key = tuple[str, str]
Objects = dict[Key, dict[str, Any]]

WRITE = st.tuples(st.sampled_from(["ns", "ns-2", "n"]), st.sampled_from(["a", "b", "a-b", "aa"]), st.integers(0, 3))
SELECTORS: dict[str, Callable[[str], bool]] = {
    "": lambda n: True,
    "n=1": lambda n: n == "1",
    "n notin (1,2)": lambda n: n not in ("1", "2"),
}


async def open_storage(kind: str, folder: str) -> Storage:
    if kind == "memory":
        return await MemoryStorage.open(compaction_interval=0, lease_interval=0)
    return await SQLiteStorage.open(Path(folder) / "store.db", compaction_interval=0, lease_interval=0)


class History:
    """The state at each revision as clients see it, computed from the storage's log."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def deliver(self, events: Sequence[Event]) -> None:
        self.events += events

    def at(self, revision: int, namespace: str, selector: str) -> Objects:
        found: Objects = {}
        for event in self.events:
            if event.revision > revision:
                break
            within, name = event.key.split("/")[-2:]
            if event.current is None:
                del found[within, name]
                continue
            obj = json.loads(event.current.value)
            obj["metadata"]["resourceVersion"] = str(event.revision)
            del obj["kind"], obj["apiVersion"]
            found[within, name] = obj
        return {
            key: obj
            for key, obj in sorted(found.items(), key=lambda item: "/".join(item[0]))
            if namespace in ("", key[0]) and SELECTORS[selector](obj["metadata"].get("labels", {}).get("n", ""))
        }


def objects(client: StoreClient, items: Sequence[Any]) -> Objects:
    plain = [client.plain(item) for item in items]
    return {(obj["metadata"]["namespace"], obj["metadata"]["name"]): obj for obj in plain}


async def write(client: StoreClient, steps: list[tuple[str, str, int]]) -> None:
    """Creates and changes the label n; 3 deletes."""
    for namespace, name, n in steps:
        there = client.store.cacher.get(client.store.key(namespace, name)) is not None
        if n == 3 and there:
            await client.delete(name, namespace=namespace)
        elif there:
            await client.change(name, partial(relabel, n), namespace=namespace)
        else:
            await client.create(name, namespace=namespace, labels={"n": str(n)})


@pytest.mark.parametrize("kind", ["memory", pytest.param("sqlite", marks=pytest.mark.slow)])
@settings(max_examples=examples(25), deadline=None)
@given(
    before=st.lists(WRITE, max_size=15),
    after=st.lists(WRITE, max_size=15),
    compacted=st.floats(0, 1),
    namespace=st.sampled_from(["", "ns", "n"]),
    selector=st.sampled_from(list(SELECTORS)),
    limit=st.integers(1, 3),
)
async def test_every_revision_that_is_kept_is_listed_and_watched_from(
    kind: str, before: list[Any], after: list[Any], compacted: float, namespace: str, selector: str, limit: int
) -> None:
    """The cache is restarted between the two parts of the writes: earlier states are read from storage, later ones from
    the cache.

    States before a compaction are gone; a watch may still start from them if they are in the cache's window.
    """
    with tempfile.TemporaryDirectory() as folder:
        storage = await open_storage(kind, folder)
        history = History()
        await storage.subscribe("/", after_revision=1, deliver=history.deliver)
        store: Store[Any] = Store(bind(CONFIG_MAPS), storage)
        client = StoreClient(store)
        await store.start()
        await write(client, before)
        await store.stop()
        await store.start()
        await write(client, after)
        now = await client.revision()
        oldest = max(1, round(compacted * now))
        await storage.compact(oldest)
        for revision in range(1, now + 1):
            await check_list(client, history, revision, namespace, selector, limit, kept=revision >= oldest)
            kept = revision >= min(oldest, store.cacher.oldest_revision)
            await check_watch(client, history, revision, now, namespace, selector, kept=kept)
        assert store.cacher.watchers == 0
        await store.stop()
        await storage.close()


async def check_list(
    client: StoreClient, history: History, revision: int, namespace: str, selector: str, limit: int, *, kept: bool
) -> None:
    """The list of exactly that revision, whole and in pages."""
    exact = {"resource_version": str(revision), "resource_version_match": EXACT}
    if not kept:
        with pytest.raises(StatusError) as caught:
            await client.list(selecting(selector, **exact), namespace=namespace)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
        return
    expected = history.at(revision, namespace, selector)
    whole = await client.list(selecting(selector, **exact), namespace=namespace)
    assert list(objects(client, whole.items).items()) == list(expected.items())
    assert (whole.revision, whole.continue_token) == (revision, "")
    page = await client.list(selecting(selector, limit=limit, **exact), namespace=namespace)
    paged = list(objects(client, page.items).items())
    while page.continue_token:
        assert len(page.items) == limit
        if not selector:
            assert page.remaining == len(expected) - len(paged)
        options = selecting(selector, limit=limit, continue_token=page.continue_token)
        page = await client.list(options, namespace=namespace)
        assert page.revision == revision
        paged += objects(client, page.items).items()
    assert paged == list(expected.items())


async def check_watch(
    client: StoreClient, history: History, revision: int, now: int, namespace: str, selector: str, *, kept: bool
) -> None:
    """A watch from that revision gets each change once, and the changes lead to the present state."""
    told: list[tuple[str, Key, dict[str, Any]]] = []

    class Sink(Events):
        def deliver(self, event: Any) -> None:
            obj = client.plain(event.entry)
            told.append((event.type, (obj["metadata"]["namespace"], obj["metadata"]["name"]), obj))

    sink = Sink()
    options: ListOptions = selecting(selector, resource_version=str(revision))
    start = await client.store.watch(client.context(namespace), options, sink)
    while start.current_revision() is None:  # noqa: ASYNC110
        await asyncio.sleep(0)
    start.handle.cancel()
    if not kept:
        assert sink.error is not None
        assert sink.error.reason == "Expired"
        assert told == []
        return
    assert sink.error is None
    expected = []
    known = history.at(revision, namespace, selector)
    for later in range(revision + 1, now + 1):
        then = history.at(later, namespace, selector)
        for key in known.keys() | then.keys():
            if known.get(key) == then.get(key):
                continue
            if key in then:
                expected.append(("MODIFIED" if key in known else "ADDED", key, then[key]))
            else:
                gone = known[key]
                metadata = {**gone["metadata"], "resourceVersion": str(later)}
                expected.append(("DELETED", key, {**gone, "metadata": metadata}))
        known = then
    assert told == expected
