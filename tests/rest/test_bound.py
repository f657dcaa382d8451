"""Resources bound to the services of their server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from steersman.api.core.v1 import ConfigMap
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, forbidden
from steersman.rest.allocator import Allocator, Inquiry
from steersman.rest.bound import bind
from steersman.rest.context import Context
from steersman.rest.resource import Resource, Subresource
from steersman.rest.strategy import ANY_NAME, Strategy

PLAIN = Resource(kind=built_in(ConfigMap), plural="notes", name_validator=ANY_NAME, ttl=60)


@dataclass
class Desk:
    """Example services of a user."""

    open: bool = True
    asked: int = 0


class DeskStrategy(Strategy[ConfigMap, Desk]):
    def __init__(self, desk: Desk | None = None) -> None:
        self.desk = desk

    def bind(self, services: Desk) -> Strategy[ConfigMap]:
        return DeskStrategy(services)

    def validate(self, ctx: Context, obj: ConfigMap) -> Iterator[FieldError]:
        if self.desk is not None and not self.desk.open:
            yield forbidden(Path("data"), "closed")


class DeskAllocator(Allocator[ConfigMap]):
    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        desk.asked += 1


class DeskInquiry(Inquiry[ConfigMap]):
    def __init__(self, desk: Desk) -> None:
        self.desk = desk


async def say(desk: Desk, ctx: Context, *about: Any) -> Any:
    return (desk, *about)


NEEDY = replace(
    PLAIN,
    strategy=DeskStrategy(),
    ttl=lambda desk: 3600 if desk.open else 1,
    allocator=DeskAllocator,
    inquiry=DeskInquiry,
    answerer=say,
    reader=lambda desk, ctx: [desk],
    subresources=(
        Subresource(name="status", strategy=DeskStrategy(), inquiry=DeskInquiry),
        Subresource(name="stamp", kind=PLAIN.kind, create=say),
        Subresource(name="talk", connect=say),
    ),
)


def test_a_resource_that_needs_nothing_is_served_without_services() -> None:
    bound = bind(PLAIN)
    assert (bound.resource, bound.strategy, bound.ttl) == (PLAIN, PLAIN.strategy, 60)
    assert (bound.allocator, bound.answerer, bound.reader) == (None, None, None)
    assert [*bound.substrategies, *bound.inquiries, *bound.acts, *bound.connects] == []


async def test_every_part_is_made_of_the_services_once() -> None:
    desk = Desk(open=False)
    bound = bind(NEEDY, desk)
    ctx = Context()
    assert [str(error) for error in bound.strategy.validate(ctx, ConfigMap())] == ["data: Forbidden: closed"]
    assert len(list(bound.substrategies["status"].validate(ctx, ConfigMap()))) == 1
    assert isinstance(bound.allocator, DeskAllocator)
    assert desk.asked == 1
    assert {name: type(each) for name, each in bound.inquiries.items()} == {"": DeskInquiry, "status": DeskInquiry}
    assert bound.ttl == 1
    assert bound.answerer is not None
    assert await bound.answerer(ctx, ConfigMap()) == (desk, ConfigMap())
    assert bound.reader is not None
    assert list(map(id, bound.reader(ctx))) == [id(desk)]
    assert await bound.acts["stamp"](ctx, "a", "body") == (desk, "a", "body")
    assert await bound.connects["talk"](ctx, "a", "request") == (desk, "a", "request")


def test_two_servers_have_parts_of_their_own() -> None:
    one, other = Desk(), Desk()
    assert bind(NEEDY, one).allocator is not bind(NEEDY, other).allocator
    assert (one.asked, other.asked) == (1, 1)
    assert not list(NEEDY.strategy.validate(Context(), ConfigMap()))
