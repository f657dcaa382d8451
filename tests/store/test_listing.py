"""Lists: the revision shown for each form of resourceVersion, selectors, and pages during writes.

The table is that of k8s.io/apiserver's `storage/cacher` as clients of kube-apiserver 1.36 see it.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.machinery.errors.status import StatusError
from steersman.rest.bound import bind
from steersman.rest.capabilities import ListOptions
from steersman.storage.memory import MemoryStorage
from steersman.store import continue_token
from steersman.store import listing as listing_module
from steersman.store.store import Store
from tests.example_counts import examples
from tests.loop_turns import steps_of_turns, yield_often
from tests.store.store_client import CLUSTER_WIDE, CONFIG_MAPS, StoreClient, refused, selecting

NO_CURSOR = "specifying resource version is not allowed when using continue"
TOO_OLD = "The resourceVersion for the provided list is too old."


async def three(client: StoreClient) -> int:
    """a, b and c; then d. The revision before d."""
    for name in "abc":
        await client.create(name)
    before = await client.revision()
    await client.create("d")
    return before


@pytest.mark.parametrize(
    ("version", "match", "limit", "names", "more"),
    [
        ("", "", 0, "abcd", False),
        ("", "", 2, "ab", True),
        ("0", "", 0, "abcd", False),
        ("0", "", 2, "abcd", False),
        ("0", "NotOlderThan", 0, "abcd", False),
        ("0", "NotOlderThan", 2, "abcd", False),
        ("past", "", 0, "abcd", False),
        ("past", "", 2, "ab", True),
        ("past", "", 3, "abc", False),
        ("past", "NotOlderThan", 0, "abcd", False),
        ("past", "NotOlderThan", 2, "ab", True),
        ("past", "NotOlderThan", 3, "abc", True),
        ("past", "Exact", 0, "abc", False),
        ("past", "Exact", 2, "ab", True),
        ("past", "Exact", 3, "abc", False),
        ("now", "Exact", 0, "abcd", False),
        ("now", "", 4, "abcd", False),
    ],
)
async def test_which_revision_a_list_shows(
    client: StoreClient, version: str, match: str, limit: int, names: str, more: bool
) -> None:
    past = await three(client)
    now = await client.revision()
    versions = {"past": str(past), "now": str(now)}
    options = ListOptions(resource_version=versions.get(version, version), resource_version_match=match, limit=limit)
    found = await client.list(options)
    exact = match == "Exact" or (version == "past" and limit and not match)
    assert "".join(client.names_of(found)) == names
    assert found.revision == (past if exact and version == "past" else now)
    assert bool(found.continue_token) is more
    assert found.remaining == ((3 if exact else 4) - len(names) if more else None)


@pytest.mark.parametrize(
    ("version", "code", "message"),
    [
        ((1 << 64) - 1, 504, "Timeout: Too large resource version: 18446744073709551615, current: "),
        (1 << 63, 504, "Timeout: Too large resource version: 9223372036854775808, current: "),
        (1 << 64, 400, 'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
    ],
)
async def test_versions_are_of_64_bits(
    client: StoreClient, monkeypatch: pytest.MonkeyPatch, version: int, code: int, message: str
) -> None:
    monkeypatch.setattr(client.store.cacher, "wait_fresh", partial(client.store.cacher.wait_fresh, timeout=0.01))
    for options in (ListOptions(resource_version=str(version)), ListOptions(resource_version=str(version), limit=1)):
        with pytest.raises(StatusError) as caught:
            await client.list(options)
        assert (caught.value.code, message in caught.value.message) == (code, True)


async def test_a_version_that_is_no_number_is_refused(client: StoreClient) -> None:
    message = (
        'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax'
    )
    await refused(client.list(ListOptions(resource_version="x")), 400, "BadRequest", message)


@pytest.mark.parametrize("match", ["", "Exact", "NotOlderThan"])
async def test_a_version_of_the_future_is_waited_for(client: StoreClient, match: str) -> None:
    now = await client.revision()
    wait = asyncio.ensure_future(client.list(ListOptions(resource_version=str(now + 1), resource_version_match=match)))
    await asyncio.sleep(0)
    assert not wait.done()
    await client.create("a")
    assert client.names_of(await wait) == ["a"]


async def test_pages_follow_one_another_at_the_revision_of_the_first(client: StoreClient) -> None:
    for name in "abcdef":
        await client.create(name)
    first = await client.list(ListOptions(limit=2))
    assert (client.names_of(first), first.remaining) == (["a", "b"], 4)
    await client.delete("c")
    await client.create("ca")
    await client.set("f", 1)
    second = await client.list(ListOptions(limit=3, continue_token=first.continue_token))
    assert (client.names_of(second), second.remaining, second.revision) == (["c", "d", "e"], 1, first.revision)
    last = await client.list(ListOptions(limit=3, continue_token=second.continue_token))
    assert (client.names_of(last), last.remaining, last.continue_token) == (["f"], None, "")
    assert "data" not in client.plain(last.items[0])


async def test_a_page_asked_for_with_a_version_is_refused(client: StoreClient) -> None:
    await three(client)
    token = (await client.list(ListOptions(limit=1))).continue_token
    await refused(client.list(ListOptions(continue_token=token, resource_version="5")), 400, "BadRequest", NO_CURSOR)
    found = await client.list(ListOptions(continue_token=token, resource_version="0", limit=1))
    assert client.names_of(found) == ["b", "c", "d"]


async def test_pages_of_all_namespaces_follow_the_keys(client: StoreClient) -> None:
    for namespace in ("ns", "ns-2", "n"):
        for name in "ab":
            await client.create(name, namespace=namespace)
    names: list[str] = []
    token = ""
    while True:
        page = await client.list(ListOptions(limit=1, continue_token=token), namespace="")
        names += [f"{m['namespace']}/{m['name']}" for m in (client.plain(item)["metadata"] for item in page.items)]
        token = page.continue_token
        if not token:
            break
    assert names == ["n/a", "n/b", "ns-2/a", "ns-2/b", "ns/a", "ns/b"]


async def test_pages_with_selectors_tell_no_remaining_count(client: StoreClient) -> None:
    for number in range(10):
        await client.create(f"a{number}", labels={"odd": str(number % 2)})
    first = await client.list(selecting("odd=1", limit=2))
    assert (client.names_of(first), first.remaining) == (["a1", "a3"], None)
    rest = await client.list(selecting("odd=1", continue_token=first.continue_token))
    assert (client.names_of(rest), rest.continue_token) == (["a5", "a7", "a9"], "")
    exactly = await client.list(selecting("odd=1", limit=5))
    assert exactly.continue_token == ""


@pytest.mark.parametrize(
    ("label", "field", "names"),
    [
        ("app=x", "", "ab"),
        ("app!=x", "", "c"),
        ("", "metadata.name=b", "b"),
        ("", "metadata.name!=b", "ac"),
        ("app=x", "metadata.name=c", ""),
        ("app=x", "metadata.name!=a", "b"),
        ("", "metadata.namespace=ns", "abc"),
        ("", "metadata.namespace=other", ""),
        ("", "metadata.name=a,metadata.name=b", ""),
    ],
)
async def test_selectors_select(client: StoreClient, label: str, field: str, names: str) -> None:
    for name, app in (("a", "x"), ("b", "x"), ("c", "y")):
        await client.create(name, labels={"app": app})
    await client.create("d", namespace="other")
    for version in ("", "0", str(await client.revision())):
        assert "".join(await client.names(selecting(label, field, resource_version=version))) == names
    exact = selecting(label, field, resource_version=str(await client.revision()), resource_version_match="Exact")
    await client.delete("a")
    assert "".join(await client.names(exact)) == names


async def test_cluster_wide_objects_are_selected_by_name(open_client: Callable[..., Awaitable[StoreClient]]) -> None:
    client = await open_client(CLUSTER_WIDE)
    for name in ("a", "ab", "b"):
        await client.create(name)
    assert await client.names(selecting(field="metadata.name=a")) == ["a"]


async def test_a_name_is_not_found_in_another_namespace_by_its_beginning(client: StoreClient) -> None:
    await client.create("a", namespace="ns2")
    assert await client.names() == []


async def test_a_long_selection_gives_way_and_is_of_one_revision(
    client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "SLICE", 2)
    for number in range(8):
        await client.create(f"a{number}", labels={"x": "y"})
    selection = asyncio.ensure_future(client.list(selecting("x=y")))
    await asyncio.sleep(0)
    await client.delete("a7")
    found = await selection
    assert len(found.items) == 8
    assert found.revision < await client.revision()


async def test_a_page_whose_revision_is_gone_tells_how_to_go_on(client: StoreClient) -> None:
    await three(client)
    first = await client.list(ListOptions(limit=2))
    await client.create("e")
    await client.store.storage.compact(await client.revision())
    await client.store.stop()
    await client.store.start()
    with pytest.raises(StatusError) as caught:
        await client.list(ListOptions(limit=2, continue_token=first.continue_token))
    error = caught.value
    assert (error.code, error.reason) == (410, "Expired")
    assert error.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    assert error.status()["metadata"]["continue"] == error.continue_token
    rest = await client.list(ListOptions(limit=2, continue_token=error.continue_token))
    assert client.names_of(rest) == ["c", "d"]
    assert rest.revision == await client.revision()
    last = await client.list(ListOptions(limit=2, continue_token=rest.continue_token))
    assert client.names_of(last) == ["e"]


async def test_an_exact_revision_that_is_gone_is_told(client: StoreClient) -> None:
    past = await three(client)
    await client.store.storage.compact(await client.revision())
    await client.store.stop()
    await client.store.start()
    options = ListOptions(resource_version=str(past), resource_version_match="Exact")
    error = await refused(client.list(options), 410, "Expired", TOO_OLD)
    assert error.status()["metadata"] == {}


async def test_a_revision_older_than_the_cache_comes_from_storage(client: StoreClient) -> None:
    past = await three(client)
    await client.delete("a")
    await client.store.stop()
    await client.store.start()
    assert client.store.cacher.oldest_revision > past
    options = ListOptions(resource_version=str(past), resource_version_match="Exact", limit=2)
    first = await client.list(options)
    assert (client.names_of(first), first.remaining, first.revision) == (["a", "b"], 1, past)
    rest = await client.list(ListOptions(continue_token=first.continue_token))
    assert client.names_of(rest) == ["c"]


def token(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


V = "meta.k8s.io/v1"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (token(b"abc"), "invalid character 'a' looking for beginning of value"),
        (token({"v": "v0", "rv": 5, "start": "a"}), "server does not recognize this encoded version v0"),
        (token({"v": V, "rv": 0, "start": "a"}), f"incorrect encoded start resourceVersion (version {V})"),
        (token({"v": V, "rv": 5, "start": ""}), f"encoded start key empty (version {V})"),
        (token({"v": V, "rv": 5, "start": "../pods/x"}), "../pods/x"),
        (token({"v": V, "rv": 5, "start": "a//b"}), "a//b"),
        ("!" * 10, None),
        ("a" * 9000, None),
    ],
)
async def test_tokens_that_are_not_the_servers_are_refused(client: StoreClient, text: str, why: str | None) -> None:
    with pytest.raises(StatusError) as caught:
        await client.list(ListOptions(continue_token=text))
    error = caught.value
    assert error.code == 400
    assert error.message.startswith("invalid continue token: continue key is not valid: ")
    if why is not None:
        assert error.message.endswith(why)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_token_does_anything_but_be_read_or_be_refused(data: bytes) -> None:
    start, revision, code = "/registry/pods/", 1, 400
    try:
        start, revision = continue_token.decode(token(data), "/registry/pods/")
    except StatusError as error:
        code = error.code
    assert code == 400
    assert start.startswith("/registry/pods/")
    assert revision != 0


NAMES = st.sampled_from([*"abcdefgh", "a-b", "aa"])
WRITE = st.tuples(NAMES, st.integers(0, 2))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.lists(WRITE, max_size=20),
    during=st.lists(st.lists(WRITE, max_size=5), min_size=1, max_size=6),
    limit=st.integers(1, 4),
    label=st.sampled_from(["", "n=1", "n!=1"]),
    restart=st.booleans(),
)
async def test_pages_add_up_to_the_list_at_their_revision(
    before: list[Any], during: list[list[Any]], limit: int, label: str, restart: bool
) -> None:
    storage = MemoryStorage(compaction_interval=0, lease_interval=0)
    store: Store[Any] = Store(bind(CONFIG_MAPS), storage)
    await store.start()
    client = StoreClient(store)

    async def write(name: str, n: int) -> None:
        """Creates, changes, or deletes."""
        there = store.cacher.get(store.key("ns", name)) is not None
        if n == 2 and there:
            await client.delete(name)
        elif there:
            await client.change(name, lambda old: old.metadata.labels.update(n=str(n)))
        else:
            await client.create(name, labels={"n": str(n)})

    for name, n in before:
        await write(name, n)
    expected = [client.plain(item) for item in (await client.list(selecting(label))).items]
    page = await client.list(selecting(label, limit=limit))
    revision = page.revision
    pages = [page]
    writes = iter(during)
    while page.continue_token:
        for name, n in next(writes, ()):
            await write(name, n)
        if restart:
            await store.stop()
            await store.start()
        page = await client.list(selecting(label, limit=limit, continue_token=page.continue_token))
        pages.append(page)
    assert [client.plain(item) for page in pages for item in page.items] == expected
    assert {page.revision for page in pages} == {revision}
    assert all(len(page.items) <= limit for page in pages)
    left = len(expected)
    for page in pages:
        left -= len(page.items)
        if not label:
            assert page.remaining == (left or None)
    again = await client.list(selecting(label, resource_version=str(revision), resource_version_match="Exact"))
    assert [client.plain(item) for item in again.items] == expected
    await store.stop()
    await storage.close()


async def test_of_many_that_go_through_entries_one_goes_on_in_a_turn_of_the_loop(
    client: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcdef":
        await client.create(name)
    yield_often(monkeypatch)
    monkeypatch.setattr(listing_module, "SLICE", 1)
    found, _ = client.store.cacher.list(client.store.prefix)
    looked: list[int] = []

    async def look(number: int) -> None:
        async for _ in listing_module.in_turns(found, any_large=False):
            looked.append(number)

    looking = [asyncio.create_task(look(number)) for number in range(10)]
    of_turns = await steps_of_turns(lambda: len(looked), lambda: all(each.done() for each in looking))
    assert len(looked) == 10 * len(found)
    assert max(of_turns) == of_turns[0] == 21, "each begins with two looks at the clock, and the first goes on"
    assert max(of_turns[1:]) == 1


async def test_large_objects_are_looked_at_one_by_one(client: StoreClient) -> None:
    """Others have the loop in between: slices have a number of objects, and of bytes."""
    await three(client)
    cacher = client.store.cacher
    assert cacher.large == 0
    for name in ("e", "f"):
        await client.create(name, data={"n": "x" * 300_000})
    assert cacher.large == 2
    found, _ = cacher.list(client.store.prefix)
    assert [len(some) async for some in listing_module.in_turns(found, any_large=True)] == [5, 1]
    assert [len(some) async for some in listing_module.in_turns(found, any_large=False)] == [6]
    assert await client.names(selecting(field="metadata.name!=e")) == ["a", "b", "c", "d", "f"]
    await client.set("e", 1)
    assert cacher.large == 1
    await client.delete("f")
    assert cacher.large == 0


def test_after_a_key_that_is_no_text_a_list_goes_on() -> None:
    token = continue_token.encode("/registry/pods/a\udcff", "/registry/pods/", 7)
    assert continue_token.decode(token, "/registry/pods/") == ("/registry/pods/a\ufffd\0", 7)
