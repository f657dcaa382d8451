"""Offloading: run a piece of work on the event loop, or in a worker thread if it takes long.

The account, the user for whom work is done, is ambient: it is bound once for each request and once for each component
of the server, and read from a context variable. A piece of work runs on the event loop unless the request is known to
work on something large. Work that discovers on the event loop that it will take long calls `ensure_offloaded`;
`offload` then runs all of the work again in a worker thread. So work given to `offload` must not change anything
outside of itself before it can no longer make that discovery.

Code that may take long and runs on the event loop outside of `offload` is a bug of its caller: the loop is held, and
`missed_offloads` counts the case.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import lru_cache, partial
from threading import local
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from steersman.work.threads import WorkerThreads

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

SERVER: Final = ""
"""User name of work that the server does for itself or for many users at once; it precedes work of all other users."""


class _TakesLong(BaseException):
    """Ends work on the event loop that must run again in a worker thread. Only `offload` catches it."""


class _State:
    """State of one thread."""

    __slots__ = ("is_offloading",)

    def __init__(self) -> None:
        self.is_offloading = False
        """True while `offload` runs work on the event loop of this thread."""


class _Here(local):
    """Holder of the state of each thread: one access to a thread-local variable costs as much as many attributes."""

    def __init__(self) -> None:
        self.state = _State()


_here: Final = _Here()


class Permit(Protocol):
    """Permit for a large request, from a semaphore that bounds the large requests in progress."""

    def acquire(self) -> Awaitable[None]:
        """Wait for the permit. Calls after the first return at once."""


class Account:
    """User for whom work is done, and the known size of that work. There is one for each request or component.

    Users share the worker threads fairly. While `is_large` is True, every further piece of work runs in a worker
    thread. `permit`, if set, is the permit that the account acquires before its first piece of work in a worker thread.
    """

    __slots__ = ("_keeps_size", "_number", "_threads", "_user", "is_large", "permit")

    def __init__(
        self, threads: WorkerThreads, user: str | Callable[[], str] = SERVER, *, keeps_size: bool = False
    ) -> None:
        """Create an account of `user`, which may be a function that is called when the name is needed.

        With `keeps_size`, all work after the first piece that took long is taken for large, too.
        """
        self._threads = threads
        self._number = next(threads.numbers)
        self._keeps_size = keeps_size
        self._user = user
        self.is_large = False
        self.permit: Permit | None = None

    @property
    def account(self) -> Account:
        """The account itself, so that an account and the owner of one are read alike."""
        return self

    @property
    def user(self) -> str:
        """Name of the user for whom the work is done."""
        return self._user if isinstance(self._user, str) else self._user()

    @user.setter
    def user(self, name: str) -> None:
        self._user = name

    def for_user(self, user: str) -> Account:
        """Return a new account on the same threads for other work of `user`, none of which is known to be large yet."""
        return Account(self._threads, user, keeps_size=True)

    def for_server(self) -> Account:
        """Return a new account for work that the server does for itself or for many users at once."""
        return Account(self._threads)

    def mark_large(self) -> None:
        """Run all further work in the worker threads; does nothing for the account of a component."""
        self.is_large = self._keeps_size

    def has_room(self) -> bool:
        """Return False while as much work of this user waits for the worker threads as may wait."""
        return self._threads.has_room(self.user)

    async def offload(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result of `work`, run on the event loop or in a worker thread. Raises what `work` raises."""
        with bound(self):
            return await offload(work, *args, **kwargs)

    def offload_if(
        self, is_large: bool, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]:
        """Return the result of `work`, run in a worker thread if `is_large`, else as by `offload`."""
        return self.run_in_thread(work, *args, **kwargs) if is_large else self.offload(work, *args, **kwargs)

    async def run_in_thread(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result of `work`, run in a worker thread. Raises what `work` raises."""
        if self.permit is not None:
            await self.permit.acquire()
        return await self._threads.run(self.user, self._number, partial(work, *args, **kwargs))


class HasAccount(Protocol):
    """Owner of an account that is created on demand, such as a request, as most requests need none."""

    account: Account | None

    def open_account(self) -> Account:
        """Create and return the account."""


_bound: Final[ContextVar[Account | HasAccount]] = ContextVar("account")


@lru_cache(maxsize=1)
def _of_process() -> Account:
    """Return the account of code that runs without a server, such as a command. Its threads start on demand."""
    return Account(WorkerThreads())


def current() -> Account:
    """Return the account that is bound to the current context, or the account of the process."""
    found = _bound.get(None)
    if isinstance(found, Account):
        return found
    if found is None:
        return _of_process()
    account = found.account
    if account is None:
        account = found.account = found.open_account()
    _bound.set(account)
    return account


bind: Final[Callable[[Account | HasAccount], Token[Account | HasAccount]]] = _bound.set
"""Bind an account, or the owner of one, to the current context. Returns a token for `unbind`."""
unbind: Final[Callable[[Token[Account | HasAccount]], None]] = _bound.reset
"""Restore the binding from before the `bind` that returned the token; call it in the same context."""


@contextmanager
def bound(account: Account) -> Iterator[Account]:
    """Bind an account to the code inside the block and to the tasks that this code starts."""
    token = _bound.set(account)
    try:
        yield account
    finally:
        _bound.reset(token)


async def offload(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what `work` returns, run for the account that is bound where it is awaited. Raises what `work` raises.

    `work` runs on the event loop unless the account's work is known to be large or `work` calls `ensure_offloaded`. Most owners
    have no account: it is made when the worker threads are needed.
    """
    owner = _bound.get(None)
    account = None if owner is None else owner.account
    if account is None or not account.is_large:
        here = _here.state
        outer, here.is_offloading = here.is_offloading, True
        try:
            return work(*args, **kwargs)
        except _TakesLong:
            account = account or current()
            account.mark_large()
        finally:
            here.is_offloading = outer
    return await account.run_in_thread(work, *args, **kwargs)


def offload_if(is_large: bool, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
    """Return the result of `work`, run in a worker thread if `is_large`, else as by `offload`.

    Meant for work whose size is known and that is not on the request's own object.
    """
    return current().run_in_thread(work, *args, **kwargs) if is_large else offload(work, *args, **kwargs)


def begin_task(work: Coroutine[Any, Any, R], *, name: str | None = None) -> asyncio.Task[R]:
    """Start a task that works on the server's account instead of the account of the current request."""
    with bound(current().for_server()):
        return asyncio.get_running_loop().create_task(work, name=name)


def mark_large() -> None:
    """Run all further work of the current request in worker threads; does nothing for the account of a component."""
    current().mark_large()


def can_move_to_thread() -> bool:
    """Return True if `offload` runs the calling code on the event loop.

    `ensure_offloaded` would then move the work to a worker thread.
    """
    return _here.state.is_offloading


def ensure_offloaded() -> None:
    """Declare that the code that follows takes long.

    On the event loop the work ends here and `offload` runs it in a thread.

    In a worker thread this does nothing. On an event loop outside of `offload` it reports to `missed_offloads`.
    """
    if _here.state.is_offloading:
        raise _TakesLong
    expect_offloading()


def expect_offloading() -> None:
    """Declare that text or expressions of users are evaluated now, which must happen in a worker thread or in
    `offload`.
    """
    # _get_running_loop, as get_running_loop would raise an exception in each worker thread
    if not _here.state.is_offloading and asyncio._get_running_loop() is not None:
        missed_offloads()


class MissedOffloads:
    """Counter of cases where code that may take long ran on the event loop.

    Tests replace `report` by one that raises.
    """

    def __init__(self) -> None:
        self.count = 0
        self.report: Callable[[], None] = self._log

    def __call__(self) -> None:
        self.count += 1
        self.report()

    def _log(self) -> None:
        if self.count == 1:
            logger.warning("code that may take long runs on the event loop", stack_info=True)


missed_offloads: Final = MissedOffloads()
"""Called when `ensure_offloaded` or `expect_offloading` runs on the event loop outside of `offload`."""
