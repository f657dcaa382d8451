"""Pool of prepared servers that tests use one after the other, each of which finds a server in its initial state."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steersman.storage.memory import Snapshot
from steersman.testing.keys import copy_keys, make_keys
from steersman.testing.threaded_environment import ThreadedEnvironment

logger = logging.getLogger(__name__)

MOST_KEPT: Final = 16
"""Idle servers of different configurations; beyond that, the least recently used one is stopped."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    environment: ThreadedEnvironment
    snapshot: Snapshot
    thread: object


class Pool:
    """Pool of servers: `with pool.borrowed(...) as environment`; `close` at the end. For one thread.

    `new_folder` creates an empty folder. After a test, its server is reset: objects are restored, connections closed,
    and the port changed. A server that cannot be reset, as its clock was moved or it was stopped, is stopped, and the
    next test gets a new one.
    """

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._keys: Path | None = None
        self._waiting: OrderedDict[str, _Prepared] = OrderedDict()

    @contextmanager
    def borrowed(self, crds: Sequence[Path] = (), *, role: str = "", **arguments: Any) -> Iterator[ThreadedEnvironment]:
        """Yield a server with these definitions, created with these arguments of `Environment`, and reset it
        afterwards.

        Servers that are borrowed at the same time need different roles, such as the names of clusters.
        Raises what `ThreadedEnvironment.start` and `apply_definitions` raise.
        """
        kind = repr((role, list(crds), sorted(arguments.items())))
        prepared = self._waiting.pop(kind, None) or self._prepare(crds, arguments)
        try:
            yield prepared.environment
        finally:
            if _renew(prepared):
                self._waiting[kind] = prepared
                if len(self._waiting) > MOST_KEPT:
                    self._waiting.popitem(last=False)[1].environment.stop()
            else:
                prepared.environment.stop()

    @contextmanager
    def new(self, crds: Sequence[Path] = (), **arguments: Any) -> Iterator[ThreadedEnvironment]:
        """Yield a new server that is stopped afterwards, so that no other test uses it."""
        environment = self._start(crds, arguments)
        try:
            yield environment
        finally:
            environment.stop()

    def _start(self, crds: Sequence[Path], arguments: dict[str, Any]) -> ThreadedEnvironment:
        folder = self._new_folder()
        if self._keys is None:
            self._keys = self._new_folder()
            make_keys(self._keys)
        copy_keys(self._keys, folder)
        environment = ThreadedEnvironment(folder=folder, **arguments)
        environment.start()
        try:
            if crds:
                environment.apply_definitions(*crds)
        except BaseException:
            environment.stop()
            raise
        environment.environment.journal.clear()
        return environment

    def _prepare(self, crds: Sequence[Path], arguments: dict[str, Any]) -> _Prepared:
        environment = self._start(crds, arguments)
        try:
            environment.settle()
            return _Prepared(environment, environment.snapshot(), environment.thread)
        except BaseException:
            environment.stop()
            raise

    def close(self) -> None:
        """Stop all servers."""
        for each in self._waiting.values():
            each.environment.stop()
        self._waiting.clear()


def _renew(prepared: _Prepared) -> bool:
    """Reset a server to its initial state. Return False if that is impossible."""
    environment = prepared.environment
    if environment.thread is not prepared.thread or environment.has_moved_time:
        return False
    try:
        environment.run(environment.environment.renew(prepared.snapshot))
    except Exception:
        logger.exception("the server cannot be used again")
        return False
    return True
