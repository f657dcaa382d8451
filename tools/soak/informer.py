"""Requests of client-go's informers, and the guarantees that informers rely on.

`Informer` follows a resource as client-go's Reflector does: a list and then watches, each resumed where the one before
ended, or a watch that begins with what there is (sendInitialEvents). `View` is what it knows; it holds every event
against that and raises `BrokenPromise` where the server told something that cannot be.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import urllib.parse
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from .http_client import Client, ConnectionLost, Response, read

Object = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""

PAGE = 500
BACKOFF = 0.1
PATIENCE = 60.0
"""Seconds that a request may take."""
OVERDUE = 30.0
"""Seconds that a watch may go on after its time is up."""
METADATA_ONLY = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"


class BrokenPromise(Exception):
    """The server told something that cannot be."""


class Refused(Exception):
    """A request was answered with a Status."""

    def __init__(self, status: Mapping[str, Any]) -> None:
        super().__init__(f"{status.get('code')} {status.get('reason')}: {status.get('message')}")
        self.code = int(status.get("code") or 0)
        causes = (status.get("details") or {}).get("causes") or []
        self.too_large_version = any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes)


async def ask(client: Client, method: str, target: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
    """Status and answer of a request. Raises ConnectionLost, and BrokenPromise if there is none in time."""
    try:
        async with asyncio.timeout(PATIENCE):
            response = await client.request(method, target, body, **headers)
            return response.status, orjson.loads(await read(response))
    except TimeoutError:
        raise BrokenPromise(f"{method} {target} was not answered in {PATIENCE} s") from None


@dataclass(frozen=True)
class Scope:
    """Followed objects. `selects` returns True if both selectors select an object."""

    path: str
    api_version: str
    kind: str
    label_selector: str = ""
    field_selector: str = ""
    selects: Callable[[Object], bool] = lambda obj: True
    metadata_only: bool = False

    @property
    def whole(self) -> bool:
        """Return True if every write to the resource is an event."""
        return not self.label_selector and not self.field_selector

    @property
    def namespace(self) -> str:
        return self.path.partition("/namespaces/")[2].partition("/")[0]

    @property
    def head(self) -> Object:
        """The type that the objects of events carry."""
        if self.metadata_only:
            return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        return {"kind": self.kind, "apiVersion": self.api_version}

    def accept(self, suffix: str = "") -> str:
        return METADATA_ONLY.format(suffix) if self.metadata_only else "application/json"

    def target(self, **options: object) -> str:
        """The request target with these query parameters; those that are empty or None are left out."""
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        given = {name: str(value) for name, value in {**selectors, **options}.items() if value not in ("", None)}
        return f"{self.path}?{urllib.parse.urlencode(given)}" if given else self.path

    def __str__(self) -> str:
        return self.target() + (" (metadata)" if self.metadata_only else "")


def key_of(obj: Object) -> Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def version_of(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _without_version(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}}


@dataclass
class View:
    """The objects of a scope as of a version, as one list and the events since then tell."""

    scope: Scope
    objects: dict[Key, Object] = field(default_factory=dict)
    version: int = 0
    """Version of the last list, event or bookmark, from which a watch continues."""
    since: int = 0
    """Version of the last list: later changes came as events."""
    seen: set[int] = field(default_factory=set)
    """The versions of those events, if the scope is whole."""

    def replace(self, objects: list[Object], version: int) -> None:
        """Starts over with a list. Raises BrokenPromise."""
        if version < self.version:
            raise BrokenPromise(f"a list is of {version}, after {self.version} was told")
        found = {}
        for obj in objects:
            self._check_selected(obj)
            if version_of(obj) > version:
                raise BrokenPromise(f"{key_of(obj)} at {version_of(obj)} is in a list of version {version}")
            if key_of(obj) in found:
                raise BrokenPromise(f"{key_of(obj)} is listed twice")
            found[key_of(obj)] = obj
        self.objects = found
        self.version = self.since = version
        self.seen = set()

    def apply(self, event: Mapping[str, Any]) -> None:
        """Takes an event of a watch from `version` on. Raises BrokenPromise."""
        kind, obj = event["type"], event["object"]
        self._check_head(event)
        version = version_of(obj)
        if kind == "BOOKMARK":
            if version < self.version:
                raise BrokenPromise(f"a bookmark at {version} after {self.version}")
            self.version = version
            return
        if version <= self.version:
            raise BrokenPromise(f"{kind} {key_of(obj)} at {version}, but the watch was at {self.version} already")
        self._change(kind, obj)
        self.version = version
        if self.scope.whole:
            self.seen.add(version)

    def apply_initial(self, event: Mapping[str, Any]) -> None:
        """Takes an event from before the bookmark that ends the initial events: they come in the order of names."""
        self._check_head(event)
        self._change(event["type"], event["object"])

    def _check_head(self, event: Mapping[str, Any]) -> None:
        obj = event["object"]
        if {name: obj.pop(name, None) for name in ("kind", "apiVersion")} != self.scope.head:
            raise BrokenPromise(f"an event of something else: {event}")

    def _change(self, kind: str, obj: Object) -> None:
        key = key_of(obj)
        self._check_selected(obj)
        self._check_transition(kind, key, obj)
        if kind == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = obj

    def _check_selected(self, obj: Object) -> None:
        namespace = self.scope.namespace
        if not self.scope.selects(obj) or (namespace and key_of(obj)[0] != namespace):
            raise BrokenPromise(f"{obj} is not selected")

    def _check_transition(self, kind: str, key: Key, obj: Object) -> None:
        known = self.objects.get(key)
        if kind not in ("ADDED", "MODIFIED", "DELETED"):
            raise BrokenPromise(f"an event of type {kind}")
        if (kind == "ADDED") is (known is not None):
            raise BrokenPromise(f"{kind} {key} at {version_of(obj)}, which was {'known' if known else 'unknown'}")
        if known is None:
            return
        if known["metadata"]["uid"] != obj["metadata"]["uid"]:
            raise BrokenPromise(f"{kind} {key} at {version_of(obj)} is another object than the one known")
        if kind == "DELETED" and _without_version(known) != _without_version(obj):
            raise BrokenPromise(f"DELETED {key} is not as it was last: {obj} for {known}")

    def copy(self) -> View:
        return View(self.scope, dict(self.objects), self.version, self.since, set(self.seen))

    def compare(self, objects: Mapping[Key, Object]) -> str:
        """Return the difference from these objects, "" for none."""
        if objects == self.objects:
            return ""
        keys = sorted(objects.keys() | self.objects.keys())
        odd = [key for key in keys if objects.get(key) != self.objects.get(key)]
        first = odd[0]
        return (
            f"{len(odd)} of {len(keys)} objects differ, the first is {first}: "
            f"known {self.objects.get(first)}, listed {objects.get(first)}"
        )


@dataclass(frozen=True)
class Habits:
    """Behaviour of an informer; the defaults are client-go's."""

    watch_list: bool = False
    """Begin with a watch that sends what there is, instead of with a list."""
    first_version: str = "0"
    """The resourceVersion of the first list."""
    page: int = PAGE
    seconds: tuple[float, float] = (5, 10)
    """Range of a watch's timeout in seconds (client-go: 5 to 10 minutes)."""
    pause: float = 0.0
    """Seconds between two readings of a watch: a slow reader."""
    audit: float = 0.0
    """The chance that an event is followed by a list of exactly its version, to compare."""
    several: bool = False
    """Several servers answer in turn, of which one may be behind what another has told."""


class Informer:
    """Follows a scope until cancelled. `view` is what it knows; it outlives `run`, which goes on from it."""

    def __init__(self, client: Client, scope: Scope, habits: Habits, counts: Counter[str], chance: random.Random):
        self.client = client
        self.view = View(scope)
        self.habits = habits
        self.hurry = asyncio.Event()
        """Set when slow readers are to be slow no longer."""
        self._scope = scope
        self._counts = counts
        self._chance = chance
        self._version_unavailable = False

    async def run(self) -> None:
        """Lists and watches for ever. Raises BrokenPromise."""
        try:
            await self._run()
        except BrokenPromise as broken:
            raise BrokenPromise(f"{self._scope}: {broken}") from broken

    async def _run(self) -> None:
        """client-go's `Reflector.ListAndWatch`, again and again."""
        resume = self.view.version > 0
        while True:
            try:
                if not resume:
                    await self._begin()
                resume = False
                await self._watch_on()
            except ConnectionLost:
                pass
            except Refused as refusal:
                if refusal.code not in (410, 429, 503) and not self._is_behind(refusal):
                    raise BrokenPromise(f"it was refused: {refusal}") from refusal
                # client-go asks for its last version then, and for none if that is gone; either has to work.
                self._version_unavailable = refusal.code in (410, 504) and self._chance.random() < 0.5
                self._counts[f"answers {refusal.code}"] += 1
            await asyncio.sleep(BACKOFF * self._chance.uniform(0.5, 1.5))

    # State

    async def _begin(self) -> None:
        """A list, or the first events of a watch; if they are of a version that is gone, once more without one."""
        try:
            if self.habits.watch_list:
                await self._watch_list()
            else:
                await self._list()
        except Refused as refusal:
            if refusal.code != 410 and not self._is_behind(refusal):
                raise
            self._version_unavailable = True
            await (self._watch_list() if self.habits.watch_list else self._list())
        self._version_unavailable = False

    def _is_behind(self, refusal: Refused) -> bool:
        """Return True if the server lags behind another one with newer versions. Raises BrokenPromise without another."""
        if refusal.too_large_version and not self.habits.several:
            raise BrokenPromise(f"the server has gone back: {refusal}") from refusal
        return refusal.too_large_version

    def _first_version(self) -> str:
        if self._version_unavailable:
            return ""
        return str(self.view.version) if self.view.version else self.habits.first_version

    def _replace(self, objects: list[Object], version: int, how: str) -> None:
        self._counts[how] += 1
        self._counts["relists"] += self.view.version > 0
        self.view.replace(objects, version)

    async def _list(self) -> None:
        """client-go's `Reflector.list` with its pager: from a version on it asks for everything at once."""
        version = self._first_version()
        limit = self.habits.page if version in ("", "0") else 0
        try:
            objects, revision = await self._pages(version, limit)
        except Refused as refusal:
            if refusal.code != 410 or not limit:
                raise
            objects, revision = await self._pages(version, 0)
        self._replace(objects, revision, "lists")

    async def _pages(self, version: str, limit: int, match: str = "") -> tuple[list[Object], int]:
        objects: list[Object] = []
        listed = ""
        following = ""
        while True:
            first = {"resourceVersion": version, "resourceVersionMatch": match}
            target = self._scope.target(limit=limit or "", **({"continue": following} if following else first))
            page = await self._get(target)
            objects += page["items"] or ()
            revision = page["metadata"]["resourceVersion"]
            following = page["metadata"].get("continue", "")
            if listed not in ("", revision):
                raise BrokenPromise(f"a page at {revision} after one at {listed}")
            listed = revision
            if not following:
                break
            self._counts["pages"] += 1
        paths = ["/".join(key_of(obj)) for obj in objects]
        if paths != sorted(paths):
            raise BrokenPromise(f"it is not listed in order: {paths}")
        if self._scope.metadata_only:
            for obj in objects:
                del obj["kind"], obj["apiVersion"]
        return objects, int(revision)

    async def _get(self, target: str) -> Any:
        status, answer = await ask(self.client, "GET", target, accept=self._scope.accept("List"))
        if status != 200:
            raise Refused(answer)
        return answer

    async def _watch_list(self) -> None:
        """client-go's `Reflector.watchList`; the watch goes on as the first of those that follow."""
        version = self._first_version() if self.view.version else ""
        options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": version}
        initial = View(self._scope)
        async with self._opened(**options) as events:
            async for event in events:
                obj = event["object"]
                if event["type"] == "ERROR":
                    raise Refused(obj)
                if event["type"] != "BOOKMARK":
                    initial.apply_initial(event)
                elif (obj["metadata"].get("annotations") or {}).get("k8s.io/initial-events-end") == "true":
                    self._replace(list(initial.objects.values()), version_of(obj), "watch-lists")
                    break
            else:
                raise ConnectionLost("the watch ended before all that there is was told")
            await self._follow(events)

    # Events

    async def _watch_on(self) -> None:
        """Watches, each from where the one before ended, until one fails."""
        while True:
            async with self._opened(resourceVersion=self.view.version) as events:
                self._counts["watches resumed"] += 1
                await self._follow(events)

    @contextlib.asynccontextmanager
    async def _opened(self, **options: object) -> AsyncIterator[AsyncIterator[Any]]:
        """A watch's events. Raises Refused."""
        seconds = self._chance.uniform(*self.habits.seconds)
        target = self._scope.target(watch="true", allowWatchBookmarks="true", timeoutSeconds=int(seconds), **options)
        response = await self._request_watch(target)
        overdue = None if self.habits.pause else int(seconds) + OVERDUE
        try:
            async with asyncio.timeout(overdue):
                yield self._events(response)
        except TimeoutError:
            raise BrokenPromise(f"{target} did not end when its time was up") from None
        finally:
            response.close()

    async def _request_watch(self, target: str) -> Response:
        """Opens a watch, again and again while that cannot be, as client-go does."""
        while True:
            try:
                response = await self.client.request("GET", target, accept=self._scope.accept())
            except ConnectionLost:
                await asyncio.sleep(BACKOFF)
                continue
            if response.status == 200:
                return response
            refusal = Refused(orjson.loads(await read(response)))
            if refusal.code not in (429, 503) and not self._is_behind(refusal):
                raise refusal
            self._counts[f"answers {refusal.code}"] += 1
            await asyncio.sleep(BACKOFF)

    async def _events(self, response: Response) -> AsyncIterator[Any]:
        rest = b""
        async for chunk in response.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield orjson.loads(line)
            if self.habits.pause and not self.hurry.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.hurry.wait(), self.habits.pause)
        if rest:
            raise BrokenPromise(f"a watch ended within an event: {rest[-200:]!r}")

    async def _follow(self, events: AsyncIterator[Any]) -> None:
        """Takes events until the watch ends, or is cut off. Raises Refused for an ERROR."""
        try:
            async for event in events:
                if event["type"] == "ERROR":
                    raise Refused(event["object"])
                self.view.apply(event)
                self._counts["bookmarks" if event["type"] == "BOOKMARK" else "events"] += 1
                if self.habits.audit and self._chance.random() < self.habits.audit:
                    await self._audit()
        except ConnectionLost:
            self._counts["watches cut off"] += 1

    async def _audit(self) -> None:
        """Compares what is known with a list of exactly that version."""
        try:
            objects, _ = await self._pages(str(self.view.version), self._chance.choice([0, 7]), "Exact")
        except (ConnectionLost, Refused) as error:
            if isinstance(error, Refused) and error.code not in (410, 429, 503) and not self._is_behind(error):
                raise BrokenPromise(f"a list at {self.view.version} was refused: {error}") from error
            self._counts["lists of exactly one version refused"] += isinstance(error, Refused)
            return
        self._counts["lists of exactly one version"] += 1
        different = self.view.compare({key_of(obj): obj for obj in objects})
        if different:
            raise BrokenPromise(f"at {self.view.version}: {different}")
