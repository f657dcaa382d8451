"""Faults of a test's server: requests that fail, wait, or lose their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from types import TracebackType
from typing import Protocol, TypeVar

import msgspec

from steersman.faults.fault import (
    Delay,
    Effect,
    Fault,
    FaultSpec,
    Injection,
    InvalidFault,
    Match,
    NodeEffect,
    StaleEffect,
    Status,
    WatchEffect,
    When,
    spec_of,
)
from steersman.faults.fault_set import FaultSet

R = TypeVar("R")

Patterns = str | Sequence[str]
"""A pattern or several; `*` stands for any text."""

_numbers = count(1)


class Call(Protocol):
    """Function that calls another one on the event loop of a server."""

    def __call__(self, what: Callable[[], R], /) -> R: ...


def _at_once(what: Callable[[], R], /) -> R:
    return what()


class InjectedFault:
    """A fault that was added, until it is removed; as a context manager it is removed at the end."""

    def __init__(self, faults: FaultSet, fault: Fault, call: Call) -> None:
        self._faults = faults
        self._fault = fault
        self._call = call

    @property
    def matched(self) -> int:
        """Number of requests that matched so far."""
        return self._fault.matched

    @property
    def injected(self) -> int:
        """Number of requests that the fault has hit."""
        return self._fault.injected

    @property
    def last(self) -> list[Injection]:
        """The last ten requests that the fault has hit."""
        return list(self._fault.last)

    def remove(self) -> None:
        """Remove the fault. Events of watches that it holds back are sent."""
        self._call(lambda: self._faults.remove(self._fault.name))

    def __enter__(self) -> InjectedFault:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.remove()


class Faults:
    """Faults of a server: `environment.faults.add(verb="create", resource="configmaps", code=409, times=1)`."""

    def __init__(self, faults: FaultSet, call: Call = _at_once) -> None:
        """`call` calls a function on the event loop of the server."""
        self._faults = faults
        self._call = call

    def add(
        self,
        *,
        verb: Patterns = (),
        resource: Patterns = (),
        namespace: Patterns = (),
        name: Patterns = (),
        user: Patterns = (),
        group: Patterns = (),
        user_agent: Patterns = (),
        webhook: Patterns = (),
        conversion: Patterns = (),
        api_service: Patterns = (),
        authentication_webhook: Patterns = (),
        authorization_webhook: Patterns = (),
        node: Patterns = (),
        skip: int = 0,
        times: int = 0,
        probability: float = 1.0,
        seed: int = 0,
        code: int = 0,
        reason: str = "",
        message: str = "",
        retry_after: int = 0,
        delay: float = 0.0,
        delay_after: float = 0.0,
        cut: bool = False,
        lose_answer: bool = False,
        hang: bool = False,
        garbage: bool = False,
        refuse: bool = False,
        silence_node: bool = False,
        delay_syncs: float = 0.0,
        stale_by: int = 0,
        stale_for: float = 0.0,
        stale_hold: bool = False,
        even_behind_shown: bool = False,
        even_consistent: bool = False,
        close_watch_after: float | None = None,
        close_watch_after_events: int | None = None,
        expire_watch: bool = False,
        delay_events: float = 0.0,
        hold_events: bool = False,
        withhold_bookmarks: bool = False,
    ) -> InjectedFault:
        """Add a fault for requests that match; the first fault that hits a request happens to it.

        `resource` is written as in RBAC rules (`pods`, `pods/status`, `*`), also as `deployments.apps`. `skip` requests
        pass first, then `times` are hit (0: all); with `probability` chance decides, the same way for each `seed`.

        With `webhook` (names of webhooks or their configurations), `conversion` (definitions), `api_service`,
        `authentication_webhook` (`default`) or `authorization_webhook` the fault is one of calls that the server makes,
        in place of requests. With `node` it is one of kubelets: with
        `silence_node` they stop to report, and with `delay_syncs` they see changes of pods so many seconds later.

        `code` answers with an error, which has the usual reason and message of its code unless they are given.
        `delay` and `delay_after` are seconds before a request is carried out, and before its answer. `cut` cuts the
        connection before the request is carried out, `lose_answer` after it. `hang` lets requests wait until the fault is
        removed, `garbage` answers with HTML, and `refuse` refuses the connection of a call. The arguments about watches
        close them after seconds or events, with the error 410 by `expire_watch`, delay their events, hold them back
        until the fault is removed, or leave out bookmarks.

        `stale_by` (revisions), `stale_for` (seconds) and `stale_hold` (since the fault was added) answer reads that
        name a resourceVersion, such as 0, from an older state, never behind the one that the connection was shown; the
        arguments `even_...` lift these limits.

        Raises InvalidFault (a ValueError).
        """
        if not code and (reason or message or retry_after):
            raise InvalidFault("reason, message and retry_after need a code")
        watch = WatchEffect(
            close_after="" if close_watch_after is None else _duration(close_watch_after),
            close_after_events=close_watch_after_events,
            expire=expire_watch,
            delay=_duration(delay_events),
            hold=hold_events,
            withhold_bookmarks=withhold_bookmarks,
        )
        effect = Effect(
            status=Status(code, reason, message, retry_after) if code else None,
            delay=Delay(_duration(delay), _duration(delay_after)),
            cut=cut,
            lose_answer=lose_answer,
            hang=hang,
            garbage=garbage,
            refuse=refuse,
            stale=StaleEffect(stale_by, _duration(stale_for), stale_hold, even_behind_shown, even_consistent),
            node=NodeEffect(silence_node, _duration(delay_syncs)),
            watch=watch,
        )
        match = Match(
            users=_patterns(user),
            groups=_patterns(group),
            user_agents=_patterns(user_agent),
            verbs=_patterns(verb),
            resources=_patterns(resource),
            namespaces=_patterns(namespace),
            names=_patterns(name),
            webhooks=_patterns(webhook),
            conversions=_patterns(conversion),
            api_services=_patterns(api_service),
            authentication_webhooks=_patterns(authentication_webhook),
            authorization_webhooks=_patterns(authorization_webhook),
            nodes=_patterns(node),
        )
        spec = spec_of(msgspec.to_builtins(FaultSpec(match, When(skip, times, probability, seed), effect)))
        fault = self._call(lambda: self._faults.add(f"test-{next(_numbers)}", spec))
        return InjectedFault(self._faults, fault, self._call)

    def clear(self) -> None:
        """Remove all faults."""
        self._call(self._faults.clear)


def _patterns(given: Patterns) -> list[str]:
    """Return patterns as a list; FaultSpec refuses other values in it."""
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given] if given else []


def _duration(seconds: float) -> str:
    """Return seconds as a duration. Raises InvalidFault."""
    if not isinstance(seconds, int | float):
        raise InvalidFault(f"{seconds!r} is no number of seconds")
    return f"{seconds:.9f}s" if seconds else ""
