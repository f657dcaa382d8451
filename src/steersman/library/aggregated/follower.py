"""Follows a collection of the cluster's objects by list and watch, as client-go's reflector does."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing
from typing import Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from steersman.library.aggregated.cluster import Cluster, status_in
from steersman.machinery.errors.status import StatusError
from steersman.work.backoff import Backoff, Retries

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)

_BACKOFF: Final = Backoff(0.4, 15.0, jitter=1.0)
_WATCH_SECONDS: Final = 300
"""How long a watch lasts at least; at most twice as long, so that those of many servers do not end at once."""
_PATIENCE: Final = 30.0
"""Seconds after which a watch that should have ended is given up: nobody is there any more."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class Meta(msgspec.Struct, rename="camel"):
    """What is read of the metadata of any object."""

    name: str = ""
    resource_version: str = ""


class _Any(msgspec.Struct):
    metadata: Meta = msgspec.field(default_factory=Meta)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_READ_EVENT: Final = msgspec.json.Decoder(_Event)
_READ_ANY: Final = msgspec.json.Decoder(_Any)


class ClusterFollower(Generic[T]):
    """Tells of every object there is, and from `start` to `stop` of every change.

    `replaced` is called with all of them, at first and whenever a watch cannot go on from where it ended; `changed`
    with one that was made or changed, and `gone` with the name of one that was deleted.
    """

    def __init__(
        self,
        cluster: Cluster,
        path: str,
        kind: type[T],
        *,
        replaced: Callable[[list[T]], None],
        changed: Callable[[T], None],
        gone: Callable[[str], None],
        field_selector: str = "",
    ) -> None:
        self._cluster = cluster
        self._path = path
        self._selector = f"&fieldSelector={quote(field_selector)}" if field_selector else ""
        self._read = msgspec.json.Decoder(kind)
        self._replaced = replaced
        self._changed = changed
        self._gone = gone
        self._version = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns once what there is has been told. Raises StatusError if it cannot be had."""
        await self._take_all()
        self._task = asyncio.get_running_loop().create_task(self._follow(), name=f"following {self._path}")

    async def stop(self) -> None:
        """Tells of nothing any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _take_all(self) -> None:
        found = await self._cluster.get(_List, f"{self._path}?resourceVersion=0{self._selector}")
        self._replaced([self._read.decode(each) for each in found.items or ()])
        self._version = found.metadata.resource_version

    async def _follow(self) -> None:
        retries = Retries(_BACKOFF)
        while True:
            try:
                if not self._version:
                    await self._take_all()
                await self._watch()
                retries.reset()
            except StatusError as error:
                if error.code == 410:
                    self._version = ""
                logger.warning("%s of the cluster cannot be followed for now: %s", self._path, error)
            except Exception:
                self._version = ""
                logger.exception("%s of the cluster cannot be followed for now", self._path)
            # also after a good end: a server that ends every watch at once is not asked all the time
            await retries.pause()

    async def _watch(self) -> None:
        """Returns when a watch has ended in an orderly way. Raises StatusError, msgspec.MsgspecError."""
        seconds = int(_WATCH_SECONDS * random.uniform(1, 2))
        target = (
            f"{self._path}?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}"
            f"&resourceVersion={self._version}{self._selector}"
        )
        try:
            async with asyncio.timeout(seconds + _PATIENCE), aclosing(self._cluster.watch(target)) as events:
                async for line in events:
                    self._take(_READ_EVENT.decode(line))
        except TimeoutError:
            logger.warning("a watch of %s did not end when it should have", self._path)

    def _take(self, event: _Event) -> None:
        if event.type == "ERROR":
            status = status_in(bytes(event.object))
            code, text = (500, "") if status is None else (status.code, status.message)
            raise StatusError(code, "", text or "the watch has failed")
        meta = _READ_ANY.decode(event.object).metadata
        if event.type == "DELETED":
            self._gone(meta.name)
        elif event.type != "BOOKMARK":
            self._changed(self._read.decode(event.object))
        self._version = meta.resource_version or self._version
