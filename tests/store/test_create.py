"""Creating through the store: names, namespaces, hooks, dry runs, and what happens when names are taken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from typing import Any

import pytest

from steersman.machinery.errors.status import StatusError, bad_request
from steersman.storage.interface import OutcomeUnknown, StorageUnavailable
from steersman.store import store as store_module
from tests.store.store_client import CLUSTER_WIDE, Recording, StoreClient, refused


async def test_a_new_object_has_what_the_server_gives_it(client: StoreClient) -> None:
    made = await client.create(
        "a", data={"k": "v"}, metadata={"uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z"}
    )
    metadata = made["metadata"]
    assert metadata["name"] == "a"
    assert metadata["namespace"] == "ns"
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] > "2020"
    assert metadata["resourceVersion"] == str(await client.revision())
    assert await client.get("a") == made


async def test_a_taken_name_is_refused(client: StoreClient) -> None:
    await client.create("a")
    error = await refused(client.create("a"), 409, "AlreadyExists", 'configmaps "a" already exists')
    assert (error.name, error.kind) == ("a", "configmaps")
    await refused(client.create("a", dry_run=True), 409, "AlreadyExists", 'configmaps "a" already exists')
    await client.create("a", namespace="other")


async def test_a_name_that_is_being_deleted_says_so(client: StoreClient) -> None:
    await client.create("a", metadata={"finalizers": ["example.com/x"]})
    await client.delete("a")
    message = 'object is being deleted: configmaps "a" already exists'
    await refused(client.create("a"), 409, "AlreadyExists", message)


@pytest.mark.parametrize("version", ["0", "00", "x", "-1", str(1 << 64)])
async def test_a_resource_version_that_is_none_is_passed_over(client: StoreClient, version: str) -> None:
    made = await client.create("a", metadata={"resourceVersion": version})
    assert made["metadata"]["resourceVersion"] == str(await client.revision())


async def test_a_resource_version_is_not_the_clients_to_set(client: StoreClient) -> None:
    message = "resourceVersion should not be set on objects to be created"
    await refused(client.create("a", metadata={"resourceVersion": "7"}), 500, "", message)


async def test_a_dry_run_takes_a_resource_version_and_gives_it_back(client: StoreClient) -> None:
    made = await client.create("a", metadata={"resourceVersion": "7"}, dry_run=True)
    assert made["metadata"]["resourceVersion"] == "7"
    await refused(client.get("a"), 404, "NotFound", 'configmaps "a" not found')


async def test_the_namespace_of_the_object_is_that_of_the_request(client: StoreClient) -> None:
    message = "the namespace of the provided object does not match the namespace sent on the request"
    await refused(client.create("a", metadata={"namespace": "other"}), 400, "BadRequest", message)


async def test_a_namespace_is_needed_where_there_are_namespaces(client: StoreClient) -> None:
    await refused(client.get("a", namespace=""), 400, "BadRequest", "Namespace parameter required.")


async def test_cluster_wide_objects_have_no_namespace(open_client: Callable[..., Awaitable[StoreClient]]) -> None:
    client = await open_client(CLUSTER_WIDE)
    made = await client.create("a")
    assert "namespace" not in made["metadata"]
    made = await client.create("b", metadata={"namespace": "ns"})
    assert "namespace" not in made["metadata"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("..", "Name parameter invalid: \"..\": may not be '..'"),
        ("a%b", "Name parameter invalid: \"a%b\": may not contain '%'"),
        ("a/b", "Name parameter invalid: \"a/b\": may not contain '/'"),
    ],
)
async def test_a_name_that_is_no_path_segment_is_refused(client: StoreClient, name: str, message: str) -> None:
    await refused(client.get(name), 400, "BadRequest", message)


async def test_faults_of_the_metadata_and_of_the_rest_are_told_together(
    open_client: Callable[..., Awaitable[StoreClient]],
) -> None:
    client = await open_client(Recording().resource())
    with pytest.raises(StatusError) as caught:
        await client.create("A_", metadata={"finalizers": ["x"]}, data={"bad": ""})
    error = caught.value
    assert (error.code, error.reason, error.kind) == (422, "Invalid", "ConfigMap")
    assert [cause.field for cause in error.causes] == ["metadata.name", "metadata.finalizers[0]", "data[bad]"]
    assert error.causes[1].message == (
        'Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified'
    )


async def test_the_hooks_are_called_in_their_order(open_client: Callable[..., Awaitable[StoreClient]]) -> None:
    strategy = Recording()
    client = await open_client(strategy.resource())
    checked = []

    async def check(obj: Any) -> None:
        checked.append(obj.data)
        strategy.calls.append("check")

    made = await client.create("a", data={"take": " x "}, check=check)
    assert strategy.calls == [
        "look_up",
        "take",
        "prepare_for_create",
        "validate",
        "warnings_on_create",
        "canonicalize",
        "check",
        "release True",
    ]
    assert checked == [{"take": "x"}]
    assert made["data"] == {"take": "x"}
    assert client.warnings == ["think again"]


async def test_what_was_taken_is_given_back_unless_the_object_is_stored(
    open_client: Callable[..., Awaitable[StoreClient]],
) -> None:
    strategy = Recording()
    client = await open_client(strategy.resource())
    await client.create("a", data={"take": "one"})

    async def refuse(obj: Any) -> None:
        raise bad_request("no")

    with pytest.raises(StatusError):
        await client.create("b", data={"take": "two", "bad": ""})
    with pytest.raises(StatusError):
        await client.create("a", data={"take": "three"})
    with pytest.raises(StatusError):
        await client.create("c", data={"take": "four"}, check=refuse)
    await client.create("d", data={"take": "five"}, dry_run=True)
    assert strategy.taken == ["one"]
    assert [call for call in strategy.calls if call.startswith("release")] == ["release True"] + 4 * ["release False"]


@pytest.mark.parametrize("failure", [OutcomeUnknown, StorageUnavailable])
async def test_what_was_taken_is_kept_if_nobody_knows_whether_the_object_is_stored(
    open_client: Callable[..., Awaitable[StoreClient]],
    monkeypatch: pytest.MonkeyPatch,
    failure: type[StorageUnavailable],
) -> None:
    strategy = Recording()
    client = await open_client(strategy.resource())
    await client.create("a", data={"take": "one"})

    async def fails(*_: object, **__: object) -> None:
        raise failure("unexpected EOF")

    with monkeypatch.context() as failing:
        failing.setattr(client.store.storage, "create", fails)
        with pytest.raises(StatusError, match="unexpected EOF"):
            await client.create("b", data={"take": "two"})
    with monkeypatch.context() as failing:
        failing.setattr(client.store.storage, "update", fails)
        with pytest.raises(StatusError, match="unexpected EOF"):
            await client.put({"metadata": {"name": "a"}, "data": {"take": "three"}})
    kept = ["one", "two", "three"] if failure is OutcomeUnknown else ["one"]
    assert strategy.taken == kept


async def test_a_dry_run_goes_the_whole_way_and_stores_nothing(
    open_client: Callable[..., Awaitable[StoreClient]],
) -> None:
    strategy = Recording()
    client = await open_client(strategy.resource())
    before = await client.revision()
    made = await client.create("a", data={"k": " v"}, dry_run=True)
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    assert made["data"] == {"k": "v"}
    assert await client.names() == []
    assert await client.revision() == before


async def test_a_generated_name_is_tried_again_when_it_is_taken(
    client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = chain(repeat("x-00000", 8), ["x-11111"])
    monkeypatch.setattr(store_module, "generate_name", lambda base: next(names))
    first = await client.create(metadata={"generateName": "x-"})
    second = await client.create(metadata={"generateName": "x-"})
    assert [made["metadata"]["name"] for made in (first, second)] == ["x-00000", "x-11111"]
    assert second["metadata"]["generateName"] == "x-"
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


async def test_a_generated_name_is_given_up_after_some_attempts(
    client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []

    def generate(base: str) -> str:
        attempts.append(base)
        return "x-00000"

    monkeypatch.setattr(store_module, "generate_name", generate)
    await client.create(metadata={"generateName": "x-"})
    attempts.clear()
    text = 'configmaps "x-00000" already exists, the server was not able to generate a unique name for the object'
    error = await refused(client.create(metadata={"generateName": "x-"}), 409, "AlreadyExists", text)
    assert error.retry_after == 1
    assert len(attempts) == 8


async def test_of_many_that_want_a_name_one_gets_it(client: StoreClient) -> None:
    results = await asyncio.gather(*(client.create("a") for _ in range(20)), return_exceptions=True)
    refusals = [result for result in results if isinstance(result, StatusError)]
    assert len(refusals) == 19
    assert {error.reason for error in refusals} == {"AlreadyExists"}


async def test_a_create_that_is_cancelled_keeps_what_it_took_only_if_it_was_stored(
    open_client: Callable[..., Awaitable[StoreClient]],
) -> None:
    strategy = Recording()
    client = await open_client(strategy.resource())
    for turns in range(6):
        work = asyncio.ensure_future(client.create(f"a{turns}", data={"take": f"a{turns}"}))
        for _ in range(turns):
            await asyncio.sleep(0)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    # whatever was still on its way is through once a later write is
    await client.create("z")
    assert strategy.taken == [name for name in await client.names() if name != "z"]


async def test_what_could_not_be_sent_back_is_not_stored(client: StoreClient) -> None:
    message, large = "etcdserver: request is too large", "x" * (3 << 20)
    await refused(client.create("a", data={"k": large}), 500, "", message)
    await client.create("a", data={"k": large}, dry_run=True)
    await client.create("a")
    await refused(client.change("a", lambda old: old.data.update(k=large)), 500, "", message)
