"""Helpers of the tests of stores: a client with plain data, and a strategy that records its calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import DeleteOptions
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.errors.field import FieldError, Path, forbidden
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.machinery.selectors import fields, labels
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.allocator import Allocator, FinishFunc, Inquiry
from steersman.rest.capabilities import Change, Item, Listing, ListOptions, WatchStart
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy
from steersman.store.store import Store
from tests.struct_class import struct_class

CONFIG_MAPS = Resource(kind=built_in(ConfigMap), plural="configmaps", name_validator=name_is_dns_subdomain)
CLUSTER_WIDE = Resource(
    kind=built_in(ConfigMap), plural="things", namespaced=False, name_validator=name_is_dns_subdomain
)


class RecordingAllocator(Allocator[ConfigMap]):
    """Takes something for every object with `data.take`, and writes down every call."""

    def __init__(self, calls: list[str], taken: list[str]) -> None:
        self.calls = calls
        self.taken = taken

    def _take(self, obj: ConfigMap) -> FinishFunc | None:
        what = obj.data.get("take")
        if what is None:
            return None
        self.taken.append(what)

        async def release(stored: bool) -> None:
            self.calls.append(f"release {stored}")
            if not stored:
                self.taken.remove(what)

        return release

    async def allocate(self, ctx: Context, new: ConfigMap, old: ConfigMap | None) -> FinishFunc | None:
        self.calls.append("take")
        return self._take(new) if old is None or old.data.get("take") != new.data.get("take") else None

    async def release(self, ctx: Context, obj: ConfigMap) -> None:
        self.calls.append("give_back")
        if "take" in obj.data:
            self.taken.remove(obj.data["take"])


class RecordingInquiry(Inquiry[ConfigMap]):
    """Writes down every call."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    async def look_up(self, ctx: Context, new: ConfigMap, old: ConfigMap | None) -> None:
        self.calls.append("look_up")


class Recording(Strategy[ConfigMap]):
    """Refuses `data.bad`, and records all calls of hooks, including those of allocators."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.taken: list[str] = []

    def resource(self) -> Resource[ConfigMap]:
        """ConfigMaps under this strategy."""
        return replace(
            CONFIG_MAPS,
            strategy=self,
            allocator=lambda _: RecordingAllocator(self.calls, self.taken),
            inquiry=lambda _: RecordingInquiry(self.calls),
        )

    def prepare_for_create(self, ctx: Context, obj: ConfigMap) -> None:
        self.calls.append("prepare_for_create")

    def validate(self, ctx: Context, obj: ConfigMap) -> Iterator[FieldError]:
        self.calls.append("validate")
        if "bad" in obj.data:
            yield forbidden(Path("data")["bad"], "no")

    def warnings_on_create(self, ctx: Context, obj: ConfigMap) -> Iterator[str]:
        self.calls.append("warnings_on_create")
        yield "think again"

    def prepare_for_update(self, ctx: Context, new: ConfigMap, old: ConfigMap) -> None:
        self.calls.append("prepare_for_update")

    def validate_update(self, ctx: Context, new: ConfigMap, old: ConfigMap) -> Iterator[FieldError]:
        self.calls.append("validate_update")
        if "bad" in new.data:
            yield forbidden(Path("data")["bad"], "no")

    def warnings_on_update(self, ctx: Context, new: ConfigMap, old: ConfigMap) -> Iterator[str]:
        self.calls.append("warnings_on_update")
        return iter(())

    def canonicalize(self, obj: ConfigMap) -> None:
        self.calls.append("canonicalize")
        obj.data = {key: value.strip() for key, value in obj.data.items()}


class Events:
    """A watch's sink, as a list of `TYPE name data`."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.revisions: list[int] = []
        self.ended = False
        self.error: StatusError | None = None
        self._more = asyncio.Event()

    def deliver(self, event: Any) -> None:
        obj = json.loads(b"{" + event.entry.body)
        self.seen.append(f"{event.type} {obj['metadata']['name']} {obj.get('data', {}).get('n', '')}".rstrip())
        self.revisions.append(event.revision)
        assert obj["metadata"]["resourceVersion"] == str(event.revision)
        self._more.set()

    async def until(self, enough: Callable[[], bool]) -> None:
        """Returns once `enough` is so."""
        while not enough():
            self._more.clear()
            await self._more.wait()

    def failed(self, error: StatusError | None) -> None:
        self.ended = True
        self.error = error
        self._more.set()

    async def drain(self) -> None:
        """Everything has been taken already."""


def selecting(label: str = "", field: str = "", **options: Any) -> ListOptions:
    """List options with selectors given as text."""
    return ListOptions(label_selector=labels.parse(label), field_selector=fields.parse(field), **options)


def relabel(number: int, obj: Any) -> None:
    """Set the label `n` of an object."""
    obj.metadata.labels.update(n=str(number))


class StoreClient:
    """A store, spoken to in plain data; in the namespace `ns` unless another is named, "" is all of them."""

    def __init__(self, store: Store[Any]) -> None:
        self.store = store
        self.warnings: list[str] = []

    def context(self, namespace: str = "ns", **more: Any) -> Context:
        given = namespace if self.store.resource.namespaced else ""
        action = Action(group=more.pop("group", ""), namespace=given)
        return Context(action=action, warnings=self.warnings, **more)

    def plain(self, item: Item) -> dict[str, Any]:
        obj: dict[str, Any] = json.loads(b"{" + item.body)
        return obj

    def struct(self, body: dict[str, Any]) -> Any:
        return from_plain(struct_class(self.store.kind), body)

    async def create(
        self, name: str = "", *, namespace: str = "ns", dry_run: bool = False, check: Any = None, **body: Any
    ) -> dict[str, Any]:
        """`create("a", data={...}, labels={...}, metadata={...})`."""
        metadata = {"name": name, **body.pop("metadata", {})}
        if "labels" in body:
            metadata["labels"] = body.pop("labels")
        obj = self.struct({"metadata": metadata, **body})
        return self.plain(await self.store.create(self.context(namespace, dry_run=dry_run), obj, check))

    async def get(self, name: str, *, namespace: str = "ns", version: str = "") -> dict[str, Any]:
        return self.plain(await self.store.get(self.context(namespace), name, version))

    async def put(self, body: dict[str, Any], *, dry_run: bool = False, **more: Any) -> tuple[dict[str, Any], bool]:
        """Replaces the object by exactly this."""

        async def make(old: Any) -> Any:
            return self.struct(body)

        ctx = self.context(dry_run=dry_run)
        item, created = await self.store.update(ctx, body["metadata"]["name"], Change(make, **more))
        return self.plain(item), created

    async def change(
        self, name: str, change: Callable[[Any], object], *, namespace: str = "ns", **more: Any
    ) -> dict[str, Any]:
        """Change the object, whatever its state."""

        async def make(old: Any) -> Any:
            new = self.store.kind.copy(old)
            change(new)
            new.metadata.resource_version = ""
            return new

        item, _ = await self.store.update(self.context(namespace), name, Change(make, **more))
        return self.plain(item)

    async def set(self, name: str, n: int | str) -> dict[str, Any]:
        """Sets `data.n`."""
        return await self.change(name, lambda old: old.data.update(n=str(n)))

    async def delete(
        self, name: str, *, namespace: str = "ns", dry_run: bool = False, **options: Any
    ) -> tuple[dict[str, Any], bool]:
        ctx = self.context(namespace, dry_run=dry_run)
        item, gone = await self.store.delete(ctx, name, from_plain(DeleteOptions, options))
        return self.plain(item), gone

    async def list(self, options: ListOptions | None = None, *, namespace: str = "ns") -> Listing:
        return await self.store.list(self.context(namespace), options or ListOptions())

    async def names(self, options: ListOptions | None = None, *, namespace: str = "ns") -> Sequence[str]:
        """The names that a list answers with."""
        return self.names_of(await self.list(options, namespace=namespace))

    def names_of(self, listing: Listing) -> Sequence[str]:
        return [self.plain(item)["metadata"]["name"] for item in listing.items]

    async def watch(self, options: ListOptions | None = None, *, namespace: str = "ns") -> tuple[Events, WatchStart]:
        events = Events()
        started = await self.store.watch(self.context(namespace), options or ListOptions(), events)
        return events, started

    async def revision(self) -> int:
        """The newest revision, with the cache up to it."""
        await self.store.wait_until_current()
        return self.store.cacher.revision


async def refused(request: Any, code: int, reason: str, message: str) -> StatusError:
    """The request ends with this Status."""
    with pytest.raises(StatusError) as caught:
        await request
    error = caught.value
    assert (error.code, error.reason, error.message) == (code, reason, message)
    return error
