"""Informers that list and watch on whichever server, and go on elsewhere from where they were."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tools.chaos.asking import Answer, Asker, Violation
from tools.chaos.history import History, Operation
from tools.chaos.writers import PATH, REFUSED
from tools.soak.http_client import ConnectionLost, Response, read
from tools.soak.informer import BrokenPromise, Object, Scope, View, key_of

_SCOPE: Final = Scope(PATH, "v1", "ConfigMap")
_OVERDUE: Final = 15.0
"""Seconds after the end of its time in which a watch may still end."""
_RESTS, _REST = 0.15, 40.0
"""Probability that an informer pauses, and the longest pause in seconds."""
_REFUSALS: Final = REFUSED | {500, 503, 504}


@dataclass(frozen=True)
class Stretch:
    """Events between two lists: all events later than `after`, up to `last`."""

    after: int
    last: int
    seen: frozenset[int]


class _StartOver(Exception):
    """The next events are no longer kept."""


class Follower:
    """Follows all objects until cancelled."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._counts = asker.counts
        self.view = View(_SCOPE)
        self.stretches: list[Stretch] = []

    async def run(self) -> None:
        """Raises Violation."""
        starts_over = False
        try:
            while True:
                try:
                    if starts_over or not self.view.version:
                        await self._list()
                        starts_over = False
                    await self._watch()
                    if self._asker.chance.random() < _RESTS:  # as if its network were gone
                        await asyncio.sleep(self._asker.chance.uniform(0, _REST))
                except ConnectionLost:
                    self._counts["watches cut off"] += 1
                    await asyncio.sleep(0.1)
                except _StartOver:
                    self._counts["informers that start over"] += not starts_over
                    starts_over = True
        except BrokenPromise as broken:
            raise Violation(f"an informer: {broken}") from broken

    def end_stretch(self) -> None:
        """Keeps what was told so far, to be judged."""
        view = self.view
        if view.since < view.version:
            self.stretches.append(Stretch(view.since, view.version, frozenset(view.seen)))

    async def _list(self) -> None:
        # client-go asks for what is not older than it knows; it may also be any state if it knows nothing.
        version = str(self.view.version) if self.view.version else self._asker.chance.choice(("", "0"))
        answer = await self._asker.ask("GET", f"{PATH}?resourceVersion={version}")
        if not isinstance(answer, Answer):
            raise ConnectionLost("no list")
        if answer.status in _REFUSALS:
            raise ConnectionLost("no list now")
        if answer.status != 200:
            raise Violation(f"a list was answered {answer.status}: {answer.body}")
        self.end_stretch()
        self._counts["lists of informers"] += 1
        self.view.replace(answer.body["items"], int(answer.body["metadata"]["resourceVersion"]))

    async def _watch(self) -> None:
        seconds = self._asker.chance.randint(2, 8)
        response = await self._asker.watch(
            f"{PATH}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={self.view.version}"
        )
        try:
            async with asyncio.timeout(seconds + _OVERDUE):
                if response.status != 200:
                    self._refused(orjson.loads(await read(response)))
                async for event in events(response):
                    if event["type"] == "ERROR":
                        self._refused(event["object"])
                    self.view.apply(event)
                    self._counts["bookmarks" if event["type"] == "BOOKMARK" else "events of informers"] += 1
        except TimeoutError:
            raise ConnectionLost("nothing comes any more") from None
        finally:
            response.close()

    def _refused(self, status: Any) -> None:
        code = status.get("code")
        if code == 410:
            raise _StartOver
        if code in _REFUSALS:
            raise ConnectionLost(str(status.get("message")))
        raise Violation(f"a watch was refused: {status}")

    async def agree(self, objects: dict[tuple[str, str], Object], seconds: float) -> None:
        """Waits until it knows just these. Raises Violation."""
        try:
            async with asyncio.timeout(seconds):
                while self.view.objects != objects:  # noqa: ASYNC110 - it is told by nobody but the server
                    await asyncio.sleep(0.1)
        except TimeoutError:
            different = self.view.compare(objects)
            raise Violation(f"an informer does not know {seconds:.0f} s later what is there: {different}") from None


async def events(response: Response) -> AsyncIterator[Any]:
    """Yield the complete events of a watch."""
    rest = b""
    async for chunk in response.chunks():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield orjson.loads(line)


def listed(items: Iterable[Object]) -> dict[tuple[str, str], Object]:
    return {key_of(each): each for each in items}


def missed(stretches: Iterable[Stretch], history: History) -> list[str]:
    """Return the events that informers missed though they were acknowledged, or seen by other informers."""
    found = []
    known = list(stretches)
    told = {version for each in known for version in each.seen}
    acknowledged: dict[int, Operation] = history.acknowledged()
    happened = sorted(told | acknowledged.keys())
    for stretch in known:
        gaps = [each for each in happened if stretch.after < each <= stretch.last and each not in stretch.seen]
        found += [
            f"an informer was not told of {each} ({acknowledged.get(each, 'which others were told of')}) "
            f"between {stretch.after} and {stretch.last}"
            for each in gaps[:3]
        ]
    return found
