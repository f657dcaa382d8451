"""What stands beside a strategy, which is pure and does not wait: what reserves, and what asks others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from steersman.rest.context import Context

T = TypeVar("T")

Settle = Callable[[bool], Any]
"""Called with whether the write that something was reserved for has gone through; what it returns may be awaited."""


class Allocator(Generic[T]):
    """Reserves what two objects of a kind cannot both have (addresses, ports), and gives it back.

    Follows the BeginCreate, BeginUpdate and AfterDelete of k8s.io/apiserver `registry/generic/registry`.
    """

    async def take(self, ctx: Context, new: T, old: T | None) -> Settle | None:
        """Reserves what `new` needs beyond what `old` (None: it is created) has, before the strategy prepares it.

        What it returns is called with True once the object is stored, with False when it was not (also on a dry run).
        May raise StatusError.
        """
        raise NotImplementedError

    async def give_back(self, ctx: Context, obj: T) -> None:
        """Gives back what the object had, once it is gone."""
        raise NotImplementedError


class Inquiry(Generic[T]):
    """Finds out what the rules of a kind need to know and cannot wait for: rights, the worth of expressions."""

    async def look_into(self, ctx: Context, new: T, old: T | None) -> None:
        """Is asked before the strategy prepares `new`, which replaces `old` (None: it is created).

        What the strategy is to know goes into `ctx.found`. May raise StatusError.
        """
        raise NotImplementedError
