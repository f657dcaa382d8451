"""Offloading: run a piece of work on the event loop, or in the worker threads if it takes long there.

Whose work it is (the account) is ambient: it is bound once for each request and once for each component of the server,
and read from a context variable. A piece of work runs on the loop unless what the request works on is known to be
large. Work that finds out on the loop that it would take long calls `takes_long`; `offload` then runs all of it again
in the threads. So work given to `offload` changes nothing outside of itself until it can no longer find that out.

Code that may take long but runs on the loop outside of `offload` is a fault of the caller: it gets its result late, the
loop waits, and `forgotten` is called, which counts it.
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
"""The user of work that the server does for itself or for many users at once; it comes before everybody else's."""


class _TakesLong(BaseException):
    """Ends work on the event loop that is to be run again in the worker threads. Caught by `offload` only."""


class _Here(local):
    """State of one thread."""

    is_offloading = False
    """Whether `offload` runs something on the event loop of this thread at this moment."""


_here: Final = _Here()


class Place(Protocol):
    """A place among the large requests that are worked on at once."""

    def take(self) -> Awaitable[None]:
        """Wait for the place, the first time."""


class Account:
    """The user for whom work is done, and what is known of its size. One for each request or component.

    Its user shares the worker threads fairly with other users. `is_large` says that every further piece of work runs in
    the threads. `place`, if there is one, is taken before the first of them.
    """

    __slots__ = ("_keeps_size", "_number", "_threads", "_user", "is_large", "place")

    def __init__(
        self, threads: WorkerThreads, user: str | Callable[[], str] = SERVER, *, keeps_size: bool = False
    ) -> None:
        """`user` may be found out when it is needed. `keeps_size`: once a piece of work has taken long, all that follow
        are taken for large too."""
        self._threads = threads
        self._number = next(threads.numbers)
        self._keeps_size = keeps_size
        self._user = user
        self.is_large = False
        self.place: Place | None = None

    @property
    def user(self) -> str:
        """The user on whose account the work is done."""
        return self._user if isinstance(self._user, str) else self._user()

    @user.setter
    def user(self, name: str) -> None:
        self._user = name

    def of(self, user: str) -> Account:
        """Return an account of the same threads for one more piece of work of `user`, nothing of which is large yet."""
        return Account(self._threads, user, keeps_size=True)

    def of_server(self) -> Account:
        """Return an account for what is done for the server itself or for many users at once."""
        return Account(self._threads)

    def mark_large(self) -> None:
        """Have all further work run in the worker threads, unless this is the account of a component."""
        self.is_large = self._keeps_size

    def has_room(self) -> bool:
        """Return False while as many pieces of work of this user wait for the threads as may."""
        return self._threads.has_room(self.user)

    async def offload(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `work` returns, run on the event loop or in the worker threads. Raises what it raises."""
        with bound(self):
            return await offload(work, *args, **kwargs)

    def offload_if(
        self, is_large: bool, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]:
        """Return what `work` returns, run in the worker threads at once if `is_large`, else as `offload` does."""
        return self.beside(work, *args, **kwargs) if is_large else self.offload(work, *args, **kwargs)

    async def beside(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what `work` returns, run in the worker threads. Raises what it raises."""
        if self.place is not None:
            await self.place.take()
        return await self._threads.run(self.user, self._number, partial(work, *args, **kwargs))


class HasAccount(Protocol):
    """Owner of an account that is made when it is first needed, such as a request, most of which need none."""

    account: Account | None

    def open_account(self) -> Account:
        """Make the account."""


_bound: Final[ContextVar[Account | HasAccount]] = ContextVar("account")


@lru_cache(maxsize=1)
def _of_process() -> Account:
    """Return the account of code that runs without a server, such as a command; its threads are made when needed."""
    return Account(WorkerThreads())


def current() -> Account:
    """Return the account that is bound here."""
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
"""Binds an account, or what has one, until `unbind` is given the token, in the same context."""
unbind: Final[Callable[[Token[Account | HasAccount]], None]] = _bound.reset
"""Binds again what was bound before."""


@contextmanager
def bound(account: Account) -> Iterator[Account]:
    """Bind an account to the code inside, and to the tasks that it starts."""
    token = _bound.set(account)
    try:
        yield account
    finally:
        _bound.reset(token)


async def offload(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what `work` returns, run for the account that is bound where it is awaited. Raises what `work` raises.

    It runs on the event loop unless the account is of something large or `work` finds that it takes long. Most owners
    have no account: it is made when the worker threads are needed.
    """
    owner = _bound.get(None)
    account = owner if owner is None or isinstance(owner, Account) else owner.account
    if account is None or not account.is_large:
        outer, _here.is_offloading = _here.is_offloading, True
        try:
            return work(*args, **kwargs)
        except _TakesLong:
            account = account or current()
            account.mark_large()
        finally:
            _here.is_offloading = outer
    return await account.beside(work, *args, **kwargs)


def offload_if(is_large: bool, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
    """Return what `work` returns, run in the worker threads at once if `is_large`, else as `offload` does.

    For a piece of work on something other than the request's own object, whose size is known.
    """
    return current().beside(work, *args, **kwargs) if is_large else offload(work, *args, **kwargs)


def begin_task(work: Coroutine[Any, Any, R], *, name: str | None = None) -> asyncio.Task[R]:
    """Start a task of the server, which does not work on the account of the request that starts it."""
    with bound(current().of_server()):
        return asyncio.get_running_loop().create_task(work, name=name)


def mark_large() -> None:
    """Have all further work of this request run in the worker threads; nothing for an account of a component."""
    current().mark_large()


def is_hurried() -> bool:
    """Return True if the event loop waits for this code, and `takes_long` would end it to have it run elsewhere."""
    return _here.is_offloading


def takes_long() -> None:
    """Say that what follows takes long: on the event loop the work ends here and `offload` runs it in the threads.

    Elsewhere nothing happens, but that an event loop that is held is told to `forgotten`.
    """
    if _here.is_offloading:
        raise _TakesLong
    expect_offloading()


def expect_offloading() -> None:
    """Say that what users wrote is evaluated now, which is to happen in a thread or within `offload`."""
    if not _here.is_offloading and asyncio._get_running_loop() is not None:  # without an exception in each thread
        forgotten()


class Forgotten:
    """Counts code that ran on the event loop though it may take long. Tests replace `report` by one that raises."""

    def __init__(self) -> None:
        self.count = 0
        self.report: Callable[[], None] = self._log

    def __call__(self) -> None:
        self.count += 1
        self.report()

    def _log(self) -> None:
        if self.count == 1:
            logger.warning("something that may take long is evaluated on the event loop", stack_info=True)


forgotten: Final = Forgotten()
"""Called where `takes_long` or `expect_offloading` runs on the event loop outside of `offload`."""
