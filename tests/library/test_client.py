"""Typed access to the objects of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

import steersman
from steersman import FieldError, ObjectMeta, Request, Server, StatusError, resource


class WidgetSpec(msgspec.Struct):
    size: int = 1


class WidgetStatus(msgspec.Struct):
    ready: bool = False


@resource("e.x/v1", selectable_fields=[".spec.size"])
class Widget(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: WidgetSpec = msgspec.field(default_factory=WidgetSpec)
    status: WidgetStatus | None = None

    @steersman.validate
    def check(self, request: Request[Widget]) -> Iterator[FieldError]:
        if self.spec.size > 9:
            yield steersman.invalid(steersman.Path("spec", "size"), self.spec.size, "too large")


@resource("e.x/v1")
class Nameless(msgspec.Struct):
    size: int = 1


def widget(name: str, size: int = 1, **meta: Any) -> Widget:
    return Widget(ObjectMeta(name=name, namespace="default", **meta), WidgetSpec(size))


@pytest.fixture
async def server(serve: Any) -> Server:
    found: Server = await serve(Widget, Nameless)
    return found


async def test_objects_are_made_got_changed_and_deleted(server: Server) -> None:
    widgets = server.objects(Widget)
    made = await widgets.create(widget("a", 2))
    assert (made.metadata.name, made.metadata.generation, made.spec.size) == ("a", 1, 2)
    made.spec.size = 3
    changed = await widgets.update(made)
    assert (changed.metadata.generation, (await widgets.get("a", "default")).spec.size) == (2, 3)
    changed.status = WidgetStatus(ready=True)
    assert (await widgets.update(changed)).status is None
    changed = await widgets.get("a", "default")
    changed.status = WidgetStatus(ready=True)
    assert (await widgets.update_status(changed)).status == WidgetStatus(ready=True)
    await widgets.delete("a", "default")
    assert await widgets.list() == []


async def test_what_is_refused_is_raised(server: Server) -> None:
    widgets = server.objects(Widget)
    made = await widgets.create(widget("a"))
    with pytest.raises(StatusError, match="already exists"):
        await widgets.create(widget("a"))
    with pytest.raises(StatusError, match="too large"):
        await widgets.create(widget("b", 10))
    with pytest.raises(StatusError) as missing:
        await widgets.get("c", "default")
    assert (missing.value.code, missing.value.reason) == (404, "NotFound")
    made.spec.size = 2
    await widgets.update(made)
    with pytest.raises(StatusError, match="the object has been modified"):
        await widgets.update(made)


async def test_lists_are_selected(server: Server) -> None:
    widgets = server.objects(Widget)
    for name, size in (("a", 1), ("b", 2)):
        await widgets.create(widget(name, size, labels={"name": name}))
    assert [each.metadata.name for each in await widgets.list("default")] == ["a", "b"]
    assert [each.metadata.name for each in await widgets.list(label_selector="name=b")] == ["b"]
    assert [each.metadata.name for each in await widgets.list(field_selector="spec.size=1")] == ["a"]
    assert await widgets.list("other") == []


async def test_apply_makes_and_changes_as_its_manager(server: Server) -> None:
    widgets = server.objects(Widget)
    made = await widgets.apply(widget("a", 2), manager="one")
    assert [each.manager for each in made.metadata.managed_fields] == ["one"]
    made.spec.size = 3
    with pytest.raises(StatusError, match="conflict"):
        await widgets.apply(made, manager="two")
    assert (await widgets.apply(made, manager="two", force=True)).spec.size == 3


async def test_a_watch_tells_what_there_is_and_what_changes(server: Server) -> None:
    widgets = server.objects(Widget)
    await widgets.create(widget("a"))
    told: list[tuple[str, str, int]] = []
    async with asyncio.timeout(20), aclosing(widgets.watch("default")) as events:
        async for event in events:
            told.append((event.type, event.object.metadata.name, event.object.spec.size))
            if len(told) == 1:
                await widgets.apply(widget("a", 5), force=True)
            elif len(told) == 2:
                await widgets.delete("a", "default")
            else:
                break
    assert told == [("ADDED", "a", 1), ("MODIFIED", "a", 5), ("DELETED", "a", 5)]


async def test_it_needs_a_server_that_runs_and_a_class_with_metadata(server: Server) -> None:
    with pytest.raises(TypeError, match="Nameless has no field `metadata`"):
        server.objects(Nameless)
    with pytest.raises(RuntimeError, match="is not running"):
        Server(Widget).objects(Widget)
