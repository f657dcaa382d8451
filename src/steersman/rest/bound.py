"""A resource bound to the services of its server, ready to be served.

Only `bind` is given the services. Stores, routes and computed kinds use the bound parts that are fields here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, overload

from msgspec import Struct

from steersman.rest.allocator import Allocator, Inquiry
from steersman.rest.context import Context
from steersman.rest.needs import S
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy

T = TypeVar("T")

Act = Callable[[Context, str, Any], Awaitable[Any]]
"""Acts on a named object: (context, name, body) -> the object or Status to answer with."""
Connect = Callable[[Context, str, Any], Awaitable[Any]]
"""Answers a request that is not about a stored object's JSON (log, exec, proxy).

(context, name, HTTP request) -> HTTP response.
"""


class BoundResource(Struct, Generic[T], frozen=True):
    """A Resource and its parts, bound to the services of one server; see the fields of Resource and Subresource."""

    resource: Resource[T]
    strategy: Strategy[T]
    substrategies: Mapping[str, Strategy[T]]
    """Strategies by subresource."""
    allocator: Allocator[T] | None
    suballocators: Mapping[str, Allocator[T]]
    """Allocators by subresource."""
    inquiries: Mapping[str, Inquiry[T]]
    """Inquiries by subresource, "" for the resource itself."""
    ttl: int
    """Seconds after which an object expires, 0 for never."""
    answerer: Callable[[Context, T], Awaitable[Any]] | None
    reader: Callable[[Context], Sequence[T]] | None
    acts: Mapping[str, Act]
    """Handlers of POSTs by subresource."""
    connects: Mapping[str, Connect]
    """Handlers of connect requests by subresource."""


@overload
def bind(resource: Resource[T, None]) -> BoundResource[T]: ...


@overload
def bind(resource: Resource[T, S], services: S) -> BoundResource[T]: ...


def bind(resource: Resource[T, Any], services: Any = None) -> BoundResource[T]:
    """Return `resource` with its parts bound to `services`.

    Call it once per server, as a bound part keeps state (an allocator remembers its allocations). A resource that
    uses no services needs none.
    """
    below = list(resource.subresources)
    names = {each.name for each in below}
    for other in resource.other_versions:  # versions that share a subresource share its declaration
        more = [each for each in other.subresources or () if each.name not in names]
        below += more
        names.update(each.name for each in more)
    inquiries = {"": resource.inquiry, **{each.name: each.inquiry for each in below}}
    return BoundResource(
        resource=resource,
        strategy=resource.strategy.bind(services),
        substrategies={each.name: each.strategy.bind(services) for each in below if each.strategy is not None},
        allocator=None if resource.allocator is None else resource.allocator(services),
        suballocators={each.name: each.allocator(services) for each in below if each.allocator is not None},
        inquiries={name: make(services) for name, make in inquiries.items() if make is not None},
        ttl=resource.ttl if isinstance(resource.ttl, int) else resource.ttl(services),
        answerer=None if resource.answerer is None else partial(resource.answerer, services),
        reader=None if resource.reader is None else partial(resource.reader, services),
        acts={each.name: partial(each.create, services) for each in below if each.create is not None},
        connects={each.name: partial(each.connect, services) for each in below if each.connect is not None},
    )
