"""Updating through the store: versions, preconditions, writes at the same time, and updates that create or delete."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.core.v1 import Event, ObjectReference
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.status import OPTIMISTIC_LOCK, StatusError, bad_request
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.capabilities import Change
from steersman.rest.resource import Resource, Subresource
from steersman.rest.strategy import Strategy
from tests.store.store_client import CONFIG_MAPS, Recording, StoreClient, refused

STALE = f'Operation cannot be fulfilled on configmaps "a": {OPTIMISTIC_LOCK}'


class CreatesOnUpdate(Recording):
    allow_create_on_update = True


class NeedsVersion(Strategy[Any]):
    allow_unconditional_update = False


async def test_an_update_at_the_present_version_goes_through(client: StoreClient) -> None:
    made = await client.create("a", data={"n": "1"})
    made["data"]["n"] = "2"
    updated, created = await client.put(made)
    assert not created
    assert updated["data"] == {"n": "2"}
    assert int(updated["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert await client.get("a") == updated


async def test_an_update_at_an_older_version_is_refused(client: StoreClient) -> None:
    made = await client.create("a", data={"n": "1"})
    await client.set("a", 2)
    error = await refused(client.put(made), 409, "Conflict", STALE)
    assert (error.name, error.kind) == ("a", "configmaps")


@pytest.mark.parametrize("version", ["", "0"])
async def test_an_update_without_a_version_replaces_whatever_is_there(client: StoreClient, version: str) -> None:
    await client.create("a", data={"n": "1"})
    await client.set("a", 2)
    updated, _ = await client.put({"metadata": {"name": "a", "resourceVersion": version}, "data": {"n": "3"}})
    assert updated["data"] == {"n": "3"}


async def test_a_version_that_is_no_number_is_refused(client: StoreClient) -> None:
    await client.create("a")
    message = 'strconv.ParseUint: parsing "x": invalid syntax'
    await refused(client.put({"metadata": {"name": "a", "resourceVersion": "x"}}), 500, "", message)


async def test_some_kinds_need_a_version(open_client: Callable[..., Awaitable[StoreClient]]) -> None:
    client = await open_client(replace(CONFIG_MAPS, strategy=NeedsVersion()))
    await client.create("a")
    message = 'configmaps "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    await refused(client.put({"metadata": {"name": "a"}}), 422, "Invalid", message)


async def test_an_object_that_is_not_there_cannot_be_updated(client: StoreClient) -> None:
    await refused(client.put({"metadata": {"name": "a"}}), 404, "NotFound", 'configmaps "a" not found')


async def test_the_uid_must_be_that_of_the_object(client: StoreClient) -> None:
    made = await client.create("a")
    uid = made["metadata"]["uid"]
    await client.put({"metadata": {"name": "a"}, "data": {"n": "1"}}, uid=uid)
    reason = (
        "StorageError: invalid object, Code: 4, Key: /registry/configmaps/ns/a, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    )
    message = f'Operation cannot be fulfilled on configmaps "a": {reason}'
    await refused(client.put({"metadata": {"name": "a"}}, uid="other"), 409, "Conflict", message)
    # a dry run tells the key without its prefix
    message = message.replace("/registry/", "/")
    await refused(client.put({"metadata": {"name": "a"}}, uid="other", dry_run=True), 409, "Conflict", message)


async def test_an_update_that_changes_nothing_writes_nothing(client: StoreClient) -> None:
    made = await client.create("a", data={"n": "1"})
    events, start = await client.watch()
    again, _ = await client.put(made)
    unconditional, _ = await client.put({"metadata": {"name": "a"}, "data": {"n": "1"}})
    assert again == unconditional == made
    assert await client.revision() == int(made["metadata"]["resourceVersion"])
    assert events.seen == []
    start.handle.cancel()


async def test_what_the_server_decides_stays_as_it_is(client: StoreClient) -> None:
    made = await client.create("a")
    with pytest.raises(StatusError) as caught:
        await client.put({"metadata": {"name": "a", "uid": "other"}})
    assert caught.value.code == 422
    updated, _ = await client.put(
        {"metadata": {"name": "a", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": 7}, "data": {"n": "1"}}
    )
    assert updated["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert updated["metadata"]["uid"] == made["metadata"]["uid"]
    assert "generation" not in updated["metadata"]


async def test_a_dry_run_shows_the_update_and_stores_nothing(client: StoreClient) -> None:
    made = await client.create("a", data={"n": "1"})
    shown, _ = await client.put({"metadata": {"name": "a"}, "data": {"n": "2"}}, dry_run=True)
    assert shown["data"] == {"n": "2"}
    assert shown["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert await client.get("a") == made
    made["metadata"]["resourceVersion"] = "1"
    await refused(client.put(made, dry_run=True), 409, "Conflict", STALE)


async def test_the_hooks_are_called_in_their_order(open_client: Callable[..., Awaitable[StoreClient]]) -> None:
    strategy = Recording()
    client = await open_client(strategy.resource())
    await client.create("a", data={"n": "1"})
    strategy.calls.clear()

    async def check(new: Any, old: Any) -> None:
        strategy.calls.append(f"check {new.data['n']} {old.data['n']}")

    await client.put({"metadata": {"name": "a"}, "data": {"n": "2", "take": "x"}}, check_update=check)
    assert strategy.calls == [
        "look_up",
        "take",
        "prepare_for_update",
        "validate_update",
        "warnings_on_update",
        "canonicalize",
        "check 2 1",
        "release True",
    ]


async def test_what_an_update_took_is_given_back_unless_it_is_stored(
    open_client: Callable[..., Awaitable[StoreClient]],
) -> None:
    strategy = Recording()
    client = await open_client(strategy.resource())
    made = await client.create("a")

    async def refuse(new: Any, old: Any) -> None:
        raise bad_request("no")

    def body(what: str, **more: str) -> dict[str, Any]:
        return {"metadata": {"name": "a"}, "data": {"take": what, **more}}

    with pytest.raises(StatusError):
        await client.put(body("one", bad=""))
    with pytest.raises(StatusError):
        await client.put(body("two"), check_update=refuse)
    await client.put(body("three"), dry_run=True)
    assert strategy.taken == []
    await client.put(body("four"))
    with pytest.raises(StatusError):
        await client.put({**made, "data": {"take": "five"}})
    assert strategy.taken == ["four"]


async def test_a_subresource_has_a_strategy_of_its_own(open_client: Callable[..., Awaitable[StoreClient]]) -> None:
    main, other = Recording(), Recording()
    resource = replace(CONFIG_MAPS, strategy=main, subresources=(Subresource(name="other", strategy=other),))
    client = await open_client(resource)
    await client.create("a")
    main.calls.clear()
    await client.put({"metadata": {"name": "a"}, "data": {"n": "1"}}, subresource="other")
    assert main.calls == []
    assert "prepare_for_update" in other.calls


async def test_writes_at_the_same_time_are_all_kept(client: StoreClient) -> None:
    await client.create("a", data={"n": ""})

    def append(letter: str) -> Any:
        return lambda old: old.data.update(n=old.data["n"] + letter)

    await asyncio.gather(*(client.change("a", append(letter)) for letter in "abcdefghijklmnop"))
    assert sorted((await client.get("a"))["data"]["n"]) == list("abcdefghijklmnop")


async def test_of_writes_at_the_same_version_one_goes_through(client: StoreClient) -> None:
    made = await client.create("a")
    bodies = [{**made, "data": {"n": str(n)}} for n in range(10)]
    results = await asyncio.gather(*map(client.put, bodies), return_exceptions=True)
    refusals = [result for result in results if isinstance(result, StatusError)]
    assert [error.message for error in refusals] == [STALE] * 9


async def test_changes_made_to_the_present_object_are_made_anew_when_another_came_first(client: StoreClient) -> None:
    await client.create("a", data={"n": ""})

    async def append(letter: str) -> None:
        async def make(old: Any) -> Any:
            new = client.store.kind.copy(old)
            new.data["n"] += letter
            return new

        await client.store.update(client.context(), "a", Change(make))

    await asyncio.gather(*map(append, "abcdefghijklmnop"))
    assert sorted((await client.get("a"))["data"]["n"]) == list("abcdefghijklmnop")


@pytest.mark.parametrize(("looks", "causes"), [("once", 0), ("twice", 0), ("finalizers", 1)])
async def test_names_of_finalizers_are_looked_at_where_upstream_does(
    open_client: Callable[..., Awaitable[StoreClient]], looks: Any, causes: int
) -> None:
    client = await open_client(
        replace(CONFIG_MAPS, strategy=type("Looks", (Strategy,), {"metadata_on_update": looks})())
    )
    await client.create("a")
    work = client.put({"metadata": {"name": "a", "finalizers": ["x"]}})
    if causes:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        message = f'ConfigMap "a" is invalid: metadata.finalizers[0]: Invalid value: "x": {detail}'
        assert len((await refused(work, 422, "Invalid", message)).causes) == causes
    else:
        assert (await work)[0]["metadata"]["finalizers"] == ["x"]


@pytest.mark.parametrize(("looks", "causes"), [("once", 2), ("twice", 3), ("finalizers", 3)])
async def test_what_is_wrong_with_labels_is_told_as_often_as_upstream_looks(
    open_client: Callable[..., Awaitable[StoreClient]], looks: Any, causes: int
) -> None:
    client = await open_client(
        replace(CONFIG_MAPS, strategy=type("Looks", (Strategy,), {"metadata_on_update": looks})())
    )
    await client.create("a")
    with pytest.raises(StatusError) as caught:
        await client.put({"metadata": {"name": "a", "labels": {"a b": "c"}}})
    assert len(caught.value.causes) == causes


async def test_an_object_deleted_while_it_is_being_updated_is_not_found(client: StoreClient) -> None:
    await client.create("a")

    async def make(old: Any) -> Any:
        await client.delete("a")
        new = client.store.kind.copy(old)
        new.metadata.resource_version = ""
        new.data["n"] = "1"
        return new

    work = client.store.update(client.context(), "a", Change(make))
    await refused(work, 404, "NotFound", 'configmaps "a" not found')


async def test_an_update_may_create_where_the_kind_allows_it(
    open_client: Callable[..., Awaitable[StoreClient]],
) -> None:
    strategy = CreatesOnUpdate()
    client = await open_client(strategy.resource())
    checked = []

    async def check(obj: Any) -> None:
        checked.append(obj.metadata.name)

    body = {"metadata": {"name": "a", "resourceVersion": "5"}, "data": {"n": "1"}}
    made, created = await client.put(body, check_create=check)
    assert created
    assert checked == ["a"]
    assert "prepare_for_create" in strategy.calls
    _, created = await client.put({"metadata": {"name": "a"}}, check_create=check)
    assert not created
    assert made["metadata"]["uid"] == (await client.get("a"))["metadata"]["uid"]


async def test_an_update_creates_where_that_is_forced(client: StoreClient) -> None:
    _, created = await client.put({"metadata": {"name": "a"}}, may_create=True)
    assert created


async def test_creating_by_update_with_a_uid_is_a_conflict(client: StoreClient) -> None:
    with pytest.raises(StatusError) as caught:
        await client.put({"metadata": {"name": "a"}}, may_create=True, uid="some")
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


async def test_creating_by_update_loses_to_a_create_and_updates_then(client: StoreClient) -> None:
    async def make(old: Any) -> Any:
        if old is None:
            await client.create("a", data={"n": "first"})
            return client.struct({"metadata": {"name": "a"}})
        new = client.store.kind.copy(old)
        new.data["more"] = "x"
        return new

    item, created = await client.store.update(client.context(), "a", Change(make, may_create=True))
    assert not created
    assert client.plain(item)["data"] == {"more": "x", "n": "first"}


async def test_the_last_finalizer_of_a_deleted_object_takes_it_along(client: StoreClient) -> None:
    await client.create("a", metadata={"finalizers": ["example.com/x", "example.com/y"]})
    await client.delete("a")
    events, start = await client.watch()
    await client.change("a", lambda old: old.metadata.finalizers.remove("example.com/x"))
    final = await client.change("a", lambda old: old.metadata.finalizers.clear())
    assert "finalizers" not in final["metadata"]
    assert await client.names() == []
    await client.revision()
    assert events.seen == ["MODIFIED a", "DELETED a"]
    start.handle.cancel()


async def test_a_dry_run_takes_no_last_finalizer(client: StoreClient) -> None:
    await client.create("a", metadata={"finalizers": ["example.com/x"]})
    deleted, _ = await client.delete("a")
    deleted["metadata"].pop("finalizers")
    shown, _ = await client.put(deleted, dry_run=True)
    assert "finalizers" not in shown["metadata"]
    assert await client.names() == ["a"]


async def test_no_finalizer_can_be_added_once_an_object_is_going(client: StoreClient) -> None:
    await client.create("a", metadata={"finalizers": ["example.com/x"]})
    await client.delete("a")
    with pytest.raises(StatusError) as caught:
        await client.change("a", lambda old: old.metadata.finalizers.append("example.com/z"))
    assert caught.value.code == 422


async def test_an_update_that_changes_nothing_of_what_expires_is_not_written(
    open_client: Callable[..., Awaitable[StoreClient]],
) -> None:
    events = Resource(kind=built_in(Event), plural="events", name_validator=name_is_dns_subdomain, ttl=60)
    client = await open_client(events)
    event = Event(involved_object=ObjectReference(namespace="ns"))
    event.metadata.name = "a"
    made = client.plain(await client.store.create(client.context(), event))
    again, _ = await client.put(made)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_an_update_that_is_cancelled_keeps_what_it_took_only_if_it_was_stored(
    open_client: Callable[..., Awaitable[StoreClient]],
) -> None:
    strategy = Recording()
    client = await open_client(strategy.resource())
    for turns in range(6):
        await client.create(f"a{turns}")
        body = {"metadata": {"name": f"a{turns}"}, "data": {"take": f"a{turns}"}}
        work = asyncio.ensure_future(client.put(body))
        for _ in range(turns):
            await asyncio.sleep(0)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    await client.create("z")
    found = await client.list()
    assert strategy.taken == [obj["data"]["take"] for obj in map(client.plain, found.items) if "data" in obj]
