"""Deletion through the store: immediate, with finalizers, with a grace period; of one object and of many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.machinery.errors.status import StatusError, bad_request
from steersman.machinery.values import times
from steersman.rest.capabilities import ListOptions
from steersman.rest.context import Context
from steersman.rest.strategy import Strategy
from tests.store.store_client import CONFIG_MAPS, Recording, StoreClient, refused, selecting

X = "example.com/x"


class Graceful(Strategy[ConfigMap]):
    """Keeps objects for half a minute, as pods are."""

    def prepare_for_create(self, ctx: Context, obj: ConfigMap) -> None:
        obj.metadata.generation = 1

    def check_graceful_delete(self, ctx: Context, obj: ConfigMap, options: DeleteOptions) -> bool:
        if options.grace_period_seconds is None:
            options.grace_period_seconds = 30
        return True


class Orphaning(Strategy[ConfigMap]):
    garbage_collection = "orphan"


class Uncollected(Strategy[ConfigMap]):
    garbage_collection = "unsupported"


class Finalizing(Strategy[ConfigMap]):
    """Goes in two steps, as namespaces do."""

    def begin_delete(self, ctx: Context, obj: ConfigMap) -> bool:
        if not obj.data.get("content"):
            return False
        if obj.metadata.deletion_timestamp is None:
            obj.metadata.deletion_timestamp = times.now()
        obj.data["phase"] = "Terminating"
        return True


@pytest.fixture
async def graceful(open_client: Callable[..., Awaitable[StoreClient]]) -> StoreClient:
    return await open_client(replace(CONFIG_MAPS, strategy=Graceful()))


async def test_an_object_goes_at_once(client: StoreClient) -> None:
    made = await client.create("a", data={"n": "1"})
    events, start = await client.watch()
    deleted, gone = await client.delete("a")
    assert gone
    assert deleted["data"] == made["data"]
    assert deleted["metadata"]["resourceVersion"] == str(await client.revision())
    assert "deletionTimestamp" not in deleted["metadata"]
    assert events.seen == ["DELETED a 1"]
    await refused(client.get("a"), 404, "NotFound", 'configmaps "a" not found')
    await refused(client.delete("a"), 404, "NotFound", 'configmaps "a" not found')
    start.handle.cancel()


async def test_a_dry_run_deletes_nothing(client: StoreClient) -> None:
    made = await client.create("a")
    shown, gone = await client.delete("a", dry_run=True)
    assert gone
    assert shown == made
    assert await client.get("a") == made


@pytest.mark.parametrize(
    ("preconditions", "text"),
    [
        (
            {"uid": "other"},
            "the UID in the precondition (other) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated",
        ),
        (
            {"resourceVersion": "1"},
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record "
            "({resourceVersion}). The object might have been modified",
        ),
    ],
)
async def test_preconditions_must_hold(client: StoreClient, preconditions: dict[str, str], text: str) -> None:
    made = await client.create("a")
    message = f'Operation cannot be fulfilled on ConfigMap "a": {text.format(**made["metadata"])}'
    await refused(client.delete("a", preconditions=preconditions), 409, "Conflict", message)
    held = {key: made["metadata"][key] for key in preconditions}
    assert (await client.delete("a", preconditions=held))[1]


async def test_contradicting_options_are_refused(client: StoreClient) -> None:
    await client.create("a")
    with pytest.raises(StatusError) as caught:
        await client.delete("a", orphanDependents=True, propagationPolicy="Orphan")
    assert (caught.value.code, caught.value.kind) == (422, "DeleteOptions")


async def test_finalizers_keep_an_object_that_is_marked_once(client: StoreClient) -> None:
    await client.create("a", metadata={"finalizers": [X]})
    marked, gone = await client.delete("a")
    assert not gone
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    again, gone = await client.delete("a")
    assert not gone
    assert again == marked


async def test_a_dry_run_shows_what_finalizers_keep(client: StoreClient) -> None:
    made = await client.create("a", metadata={"finalizers": [X]})
    shown, gone = await client.delete("a", dry_run=True)
    assert not gone
    assert shown["metadata"]["deletionTimestamp"]
    assert await client.get("a") == made


@pytest.mark.parametrize(
    ("strategy", "options", "finalizers"),
    [
        (Strategy, {"propagationPolicy": "Orphan"}, ["orphan"]),
        (Strategy, {"orphanDependents": True}, ["orphan"]),
        (Strategy, {"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        (Strategy, {"propagationPolicy": "Background"}, None),
        (Strategy, {"orphanDependents": False}, None),
        (Strategy, {}, None),
        (Orphaning, {}, ["orphan"]),
        (Orphaning, {"propagationPolicy": "Background"}, None),
        (Uncollected, {"propagationPolicy": "Orphan"}, None),
    ],
)
async def test_the_collector_learns_by_finalizers(
    open_client: Callable[..., Awaitable[StoreClient]], strategy: Any, options: Any, finalizers: Any
) -> None:
    client = await open_client(replace(CONFIG_MAPS, strategy=strategy()))
    await client.create("a")
    left, gone = await client.delete("a", **options)
    assert gone is (finalizers is None)
    assert left["metadata"].get("finalizers") == finalizers


@pytest.mark.parametrize(
    ("present", "options", "finalizers"),
    [
        (["foregroundDeletion"], {"propagationPolicy": "Orphan"}, ["orphan"]),
        (["orphan"], {"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        (["orphan", X], {"propagationPolicy": "Background"}, [X]),
        (["orphan"], {}, ["orphan"]),
        (["foregroundDeletion"], {}, ["foregroundDeletion"]),
        (["orphan"], {"propagationPolicy": "Background"}, None),
    ],
)
async def test_the_options_decide_over_the_finalizers_there_are(
    client: StoreClient, present: list[str], options: Any, finalizers: list[str] | None
) -> None:
    await client.create("a", metadata={"finalizers": present})
    left, gone = await client.delete("a", **options)
    assert gone is (finalizers is None)
    if finalizers:
        assert left["metadata"]["finalizers"] == finalizers


async def test_a_graceful_object_stays_for_its_grace(graceful: StoreClient) -> None:
    await graceful.create("a")
    marked, gone = await graceful.delete("a")
    assert not gone
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    assert marked["metadata"]["generation"] == 2
    again, gone = await graceful.delete("a")
    assert not gone
    assert again == marked


async def test_grace_can_be_shortened_and_not_prolonged(graceful: StoreClient) -> None:
    await graceful.create("a")
    first, _ = await graceful.delete("a")
    longer, gone = await graceful.delete("a", gracePeriodSeconds=60)
    assert (longer, gone) == (first, False)
    shorter, gone = await graceful.delete("a", gracePeriodSeconds=10)
    assert not gone
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 10
    assert shorter["metadata"]["deletionTimestamp"] < first["metadata"]["deletionTimestamp"]
    assert shorter["metadata"]["generation"] == first["metadata"]["generation"]


async def test_negative_grace_is_a_second(graceful: StoreClient) -> None:
    await graceful.create("a")
    marked, gone = await graceful.delete("a", gracePeriodSeconds=-5)
    assert not gone
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 1


@pytest.mark.parametrize(
    ("seconds", "year"), [(2**63 - 1, 0), (10**11, 246), (10**10, -268), (9_223_372_036, 292), (9_223_372_037, -293)]
)
async def test_a_grace_beyond_64_bits_of_nanoseconds_wraps_around(
    graceful: StoreClient, seconds: int, year: int
) -> None:
    await graceful.create("a")
    marked, gone = await graceful.delete("a", gracePeriodSeconds=seconds)
    assert not gone
    assert marked["metadata"]["deletionGracePeriodSeconds"] == seconds
    moved = times.parse(marked["metadata"]["deletionTimestamp"]) - times.parse(times.now())
    assert moved.days // 365.25 == year or (year == 0 and -5 <= moved.total_seconds() <= -1)
    shorter, gone = await graceful.delete("a", gracePeriodSeconds=60)
    assert not gone
    assert 50 < (times.parse(shorter["metadata"]["deletionTimestamp"]) - times.parse(times.now())).total_seconds() <= 60


async def test_without_grace_watchers_see_the_object_marked_and_then_gone(graceful: StoreClient) -> None:
    await graceful.create("a")
    events, start = await graceful.watch()
    deleted, gone = await graceful.delete("a", gracePeriodSeconds=0)
    assert gone
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 0
    await graceful.revision()
    assert events.seen == ["MODIFIED a", "DELETED a"]
    start.handle.cancel()


async def test_grace_and_finalizers_go_together(graceful: StoreClient) -> None:
    await graceful.create("a", metadata={"finalizers": [X]})
    await graceful.delete("a")
    await graceful.change("a", lambda old: old.metadata.finalizers.clear())
    assert await graceful.names() == ["a"]
    _, gone = await graceful.delete("a", gracePeriodSeconds=0)
    assert gone


async def test_with_finalizers_left_the_end_of_the_grace_is_not_the_end(graceful: StoreClient) -> None:
    await graceful.create("a", metadata={"finalizers": [X]})
    marked, gone = await graceful.delete("a", gracePeriodSeconds=0)
    assert not gone
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    await graceful.change("a", lambda old: old.metadata.finalizers.clear())
    assert await graceful.names() == []


async def test_some_kinds_finalize_themselves(open_client: Callable[..., Awaitable[StoreClient]]) -> None:
    client = await open_client(replace(CONFIG_MAPS, strategy=Finalizing()))
    await client.create("a", data={"content": "yes"})
    left, gone = await client.delete("a")
    assert not gone
    assert left["data"]["phase"] == "Terminating"
    assert left["metadata"]["deletionTimestamp"]
    # an update that leaves it without content and finalizers lets it go, as any other
    await client.set("a", 1)
    assert await client.names() == []
    await client.create("b", data={})
    assert (await client.delete("b"))[1]


async def test_what_a_check_raises_keeps_the_object(client: StoreClient) -> None:
    await client.create("a", data={"n": "1"})

    async def refuse(obj: Any) -> None:
        obj.data["n"] = "changed"
        raise bad_request("no")

    ctx = client.context()
    await refused(client.store.delete(ctx, "a", DeleteOptions(), refuse), 400, "BadRequest", "no")
    assert (await client.get("a"))["data"] == {"n": "1"}


async def test_a_delete_that_loses_a_race_tries_again(client: StoreClient) -> None:
    await client.create("a", data={"n": "1"})
    seen = []

    async def check(obj: Any) -> None:
        seen.append(obj.data["n"])
        if len(seen) == 1:
            await client.set("a", 2)

    item, gone = await client.store.delete(client.context(), "a", DeleteOptions(), check)
    assert gone
    assert seen == ["1", "2"]
    assert client.plain(item)["data"] == {"n": "2"}


async def test_of_many_deletes_one_finds_the_object(client: StoreClient) -> None:
    await client.create("a")
    results = await asyncio.gather(*(client.delete("a") for _ in range(10)), return_exceptions=True)
    assert len([result for result in results if isinstance(result, StatusError) and result.code == 404]) == 9


async def test_what_an_object_had_is_given_back_however_it_goes(
    open_client: Callable[..., Awaitable[StoreClient]],
) -> None:
    strategy = Recording()
    client = await open_client(strategy.resource())
    for name in "abc":
        await client.create(name, data={"take": name}, metadata={"finalizers": [X] if name == "b" else []})
    await client.delete("a", dry_run=True)
    await client.delete("b")
    assert strategy.taken == ["a", "b", "c"]
    await client.delete("a")
    await client.change("b", lambda old: old.metadata.finalizers.clear())
    assert strategy.taken == ["c"]
    work = asyncio.ensure_future(client.delete("c"))
    await asyncio.sleep(0)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await client.create("z")
    assert strategy.taken == [name for name in await client.names() if name != "z"]


async def test_a_collection_is_deleted_as_it_is_selected(client: StoreClient) -> None:
    for number in range(40):
        await client.create(f"a{number:02}", labels={"even": str(number % 2 == 0)})
    await client.create("b", namespace="other", labels={"even": "True"})
    ctx = client.context()
    deleted = await client.store.delete_collection(ctx, DeleteOptions(), selecting("even=True"))
    assert client.names_of(deleted) == [f"a{number:02}" for number in range(0, 40, 2)]
    assert await client.names() == [f"a{number:02}" for number in range(1, 40, 2)]
    assert await client.names(namespace="other") == ["b"]
    with pytest.raises(StatusError, match="Namespace parameter required"):
        await client.store.delete_collection(client.context(""), DeleteOptions(), ListOptions())
    assert len(await client.names(namespace="")) == 21


async def test_options_of_a_collection_are_those_of_each_object(graceful: StoreClient) -> None:
    await graceful.create("a")
    await graceful.create("b")
    await graceful.store.delete_collection(graceful.context(), DeleteOptions(), ListOptions())
    found = [graceful.plain(item)["metadata"] for item in (await graceful.list()).items]
    assert [metadata["deletionGracePeriodSeconds"] for metadata in found] == [30, 30]


async def test_a_dry_run_deletes_no_collection(client: StoreClient) -> None:
    await client.create("a")
    ctx = client.context(dry_run=True)
    deleted = await client.store.delete_collection(ctx, DeleteOptions(), ListOptions())
    assert client.names_of(deleted) == await client.names() == ["a"]


async def test_an_object_that_is_gone_already_does_not_matter_to_a_collection(client: StoreClient) -> None:
    for name in "ab":
        await client.create(name)

    async def check(obj: Any) -> None:
        if obj.metadata.name == "a":
            await client.delete("a")

    await client.store.delete_collection(client.context(), DeleteOptions(), ListOptions(), check)
    assert await client.names() == []


async def test_a_refusal_ends_a_collection_there(client: StoreClient) -> None:
    """Items before it are deleted, and later items are not even read."""
    for name in "abcde":
        await client.create(name)
    looked_at = []

    async def check(obj: Any) -> None:
        looked_at.append(obj.metadata.name)
        await asyncio.sleep(0)
        if obj.metadata.name == "c":
            raise bad_request("no")

    work = client.store.delete_collection(client.context(), DeleteOptions(), ListOptions(), check)
    await refused(work, 400, "BadRequest", "no")
    assert (looked_at, await client.names()) == (["a", "b", "c"], ["c", "d", "e"])


async def test_a_collection_ends_at_an_object_that_is_another_now(client: StoreClient) -> None:
    for name in "abc":
        await client.create(name)
    found = client.plain((await client.list()).items[0])["metadata"]["uid"]
    options = DeleteOptions(preconditions=Preconditions(uid=found))
    with pytest.raises(StatusError, match="does not match the UID in record"):
        await client.store.delete_collection(client.context(), options, ListOptions())
    assert await client.names() == ["b", "c"]


async def test_large_objects_of_a_collection_are_deleted_one_by_one(client: StoreClient) -> None:
    """Watchers and the response get separate copies, which are not all made in one iteration of the event loop."""
    for name in "abc":
        await client.create(name, data={"text": "x" * 700_000})
    await client.create("d")
    at_work, most = 0, 0

    async def check(obj: Any) -> None:
        nonlocal at_work, most
        if not obj.data:
            return
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0)
        at_work -= 1

    await client.store.delete_collection(client.context(), DeleteOptions(), ListOptions(), check)
    assert (await client.names(), most) == ([], 1)


async def test_warnings_of_a_collection_are_bounded_together(client: StoreClient) -> None:
    ctx = client.context()
    own = replace(ctx)
    ctx.warn_all(str(number) * 300 for number in range(10, 20))
    own.warn_all(str(number) * 300 for number in range(10, 40))
    assert len(client.warnings) == len(set(client.warnings)) == 4096 // 256 + 1
