"""Asynchronous companions of a strategy, which is pure and never waits: allocators of addresses and ports, and
inquiries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from steersman.rest.context import Context

T = TypeVar("T")

FinishFunc = Callable[[bool], Any]
"""Reports the outcome of the write for which something was reserved: True if the object was stored (upstream's
FinishFunc).

The caller awaits the result if it is awaitable.
"""


class Allocator(Generic[T]):
    """Reserves values that two objects of a kind cannot share (addresses, ports), and releases them.

    Follows the BeginCreate, BeginUpdate and AfterDelete of k8s.io/apiserver `registry/generic/registry`.
    """

    async def allocate(self, ctx: Context, new: T, old: T | None) -> FinishFunc | None:
        """Reserve the values that `new` needs and `old` does not have yet, before the strategy prepares `new`.

        `old` is None on create. The caller calls the returned function with True once the object is stored, and with
        False if it was not stored (also on a dry run). None is returned if nothing was reserved. May raise StatusError.
        """
        raise NotImplementedError

    async def release(self, ctx: Context, obj: T) -> None:
        """Release the values of an object that has been deleted."""
        raise NotImplementedError


class Inquiry(Generic[T]):
    """Looks up, before validation, facts that the rules of a kind need and can only get by waiting.

    Examples are permissions of the request user and the cost of expressions.
    """

    async def look_up(self, ctx: Context, new: T, old: T | None) -> None:
        """Look up the facts for `new`, which replaces `old` (None on create), before the strategy prepares `new`.

        The strategy reads the result from `ctx.inquiry_result`. May raise StatusError.
        """
        raise NotImplementedError
