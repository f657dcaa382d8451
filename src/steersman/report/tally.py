"""Counts of requests by client, from the lines that /debug/requests serves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from steersman.machinery.identity.schema import GroupResource
from steersman.work.bounded_cache import BoundedSet

MOST_CLIENTS: Final = 500
"""Clients that are counted; further ones are counted together."""
MOST_OBJECTS: Final = 10_000
"""Objects of a client whose writes are counted one by one."""
MOST_KINDS: Final = 2_000
"""Pairs of verb and resource of a client that are counted one by one."""
MOST_KEYS: Final = 100_000
"""Objects, fields, pairs of verb and resource, and warnings that are counted one by one, of all clients together."""
_MOST_FIELDS: Final = 20
"""Changed fields of a write that are counted."""
_MOST_WARNINGS: Final = 20
"""Different warnings of a client that are counted one by one."""
_MOST_RIVALS: Final = 5
"""Writers of a field or object that are kept by name."""
_MOST_OPEN: Final = 10_000
"""Watches whose beginning is remembered until their end."""
_MOST_TEXT: Final = 256
WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_CHANGES: Final = frozenset({"create", "update", "patch", "delete"})
OTHERS: Final = "(others)"

Target = tuple[str, str, str]
"""Group, resource with its subresource, and verb; for a path without a resource "", the path and the verb."""
ObjectKey = tuple[str, str, str]
"""Resource with its group, namespace and name of an object."""
FieldKey = tuple[ObjectKey, str]
"""Object, and the path of a field; the path is "" where the changed fields are not told."""


class Request(msgspec.Struct, rename="camel", omit_defaults=True):
    """The members of a line that are counted."""

    id: str = ""
    verb: str = ""
    path: str = ""
    api_group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    user_agent: str = ""
    code: int = 0
    milliseconds: float = 0.0
    limited: bool | None = None
    unchanged: bool | None = None
    initial: bool = False
    """True for a list or watch that begins with all objects, as informers do when they start."""
    open: bool = False
    """True for a watch that has just begun; the line at its end has the same id."""
    denied: bool = False
    """True if the authorizer has refused the request, False if admission has."""
    changed: list[str] | None = None
    warnings: list[str] = []

    def bounded(self) -> Request:
        """Return the line with texts of bounded length and a code that HTTP has."""
        for name in _TEXTS:
            value = getattr(self, name)
            if len(value) > _MOST_TEXT:
                setattr(self, name, value[:_MOST_TEXT])
        if not 100 <= self.code < 600:
            self.code = 0
        if self.changed is not None:
            self.changed = _cut(self.changed[:_MOST_FIELDS])
        self.warnings = _cut(self.warnings[:_MOST_WARNINGS])
        return self


_TEXTS: Final = (
    "id",
    "verb",
    "path",
    "api_group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "user",
    "user_agent",
)


def _cut(texts: Iterable[str]) -> list[str]:
    return [each[:_MOST_TEXT] for each in texts]


class Room:
    """The room for further keys of all counters of a tally together."""

    def __init__(self, keys: int) -> None:
        self._left = keys

    def key(self, counter: Mapping[Any, Any], key: Any, most: int, otherwise: Any) -> Any:
        """Return the key if the counter has it or has room for it, else `otherwise`."""
        if key in counter:
            return key
        if len(counter) >= most or self._left <= 0:
            return otherwise
        self._left -= 1
        return key


class ClientCounts:
    """Requests of one client."""

    def __init__(self, user_agent: str, user: str, room: Room) -> None:
        self.user_agent = user_agent
        self.user = user
        self._room = room
        self.requests: Counter[Target] = Counter()
        self.codes: Counter[int] = Counter()
        self.failed: Counter[Target] = Counter()
        self.failures: dict[int, Counter[Target]] = {}
        """Failed requests by code."""
        self.denied: Counter[Target] = Counter()
        """Requests that were refused for lack of rights."""
        self.unchanged: Counter[ObjectKey] = Counter()
        """Writes that left an object as it was."""
        self.writes: Counter[ObjectKey] = Counter()
        self.unlimited: Counter[Target] = Counter()
        """Lists without a limit and without a selector, other than those by which an informer starts."""
        self.restarts: Counter[ObjectKey] = Counter()
        """Lists and watches that began with all objects though others had before, by resource and namespace."""
        self.rewatches: Counter[ObjectKey] = Counter()
        """Watches that went on from a revision though others had before, by resource and namespace."""
        self.most_writes: Counter[ObjectKey] = Counter()
        """Writes of each object, of the server on which there were the most."""
        self.warnings: Counter[str] = Counter()
        self.allowed: set[Target] = set()
        """Requests that were not refused for lack of rights."""
        self.milliseconds = 0.0
        self.begun: set[tuple[bool, ObjectKey]] = set()
        """Kinds of reads that the client has begun on the present server."""
        self.writes_here: Counter[ObjectKey] = Counter()
        """Writes of each object on the present server."""
        self.has_watched = False
        self.watched: dict[str, int] = {}
        """Resources that the client watches, each with the changes by others before its first watch."""
        self.changes_before = 0
        """Changes by others to watched resources on earlier servers."""
        self.changes: Counter[str] = Counter()
        """Own changes by resource."""

    @property
    def total(self) -> int:
        """Number of requests."""
        return sum(self.codes.values())

    @property
    def write_count(self) -> int:
        """Number of requests that write, also of those that failed."""
        return sum(count for (_, _, verb), count in self.requests.items() if verb in WRITES)

    def count(self, line: Request) -> None:
        """Count a request."""
        target = self._room.key(self.requests, target_of(line), MOST_KINDS, ("", OTHERS, line.verb))
        self.requests[target] += 1
        self.codes[line.code] += 1
        if line.code >= 400:
            self.failed[target] += 1
            self.failures.setdefault(line.code, Counter())[target] += 1
        if line.denied:
            self.denied[target] += 1
        elif line.code != 401:
            self.allowed.add(target)
            if line.code == 201 and line.verb in ("patch", "update") and not line.subresource:
                self.allowed.add((line.api_group, line.resource, "create"))  # the right that creating in this way needs
        for text in line.warnings:
            self.warnings[self._room.key(self.warnings, text, _MOST_WARNINGS, OTHERS)] += 1
        if line.verb in ("list", "watch") and line.resource:
            self._count_read(line, target)
        if line.verb != "watch":
            self.milliseconds += line.milliseconds
        if line.verb in _CHANGES and line.code < 400 and line.resource:
            self._count_write(line)

    def _count_read(self, line: Request, target: Target) -> None:
        if line.initial or line.verb == "watch":
            key = (full_resource(line), line.namespace, "")
            counter = self.restarts if line.initial else self.rewatches
            if (line.initial, key) in self.begun:
                counter[self._room.key(counter, key, MOST_KINDS, (OTHERS, "", ""))] += 1
            elif len(self.begun) < 2 * MOST_KINDS:
                self.begun.add((line.initial, key))
        elif line.limited is False:
            self.unlimited[target] += 1

    def _count_write(self, line: Request) -> None:
        key = self._room.key(self.writes, object_of(line), MOST_OBJECTS, (OTHERS, "", ""))
        self.writes[key] += 1
        self.writes_here[key] += 1
        self.most_writes[key] = max(self.most_writes[key], self.writes_here[key])
        if line.unchanged:
            self.unchanged[key] += 1


def target_of(line: Request) -> Target:
    """Return the target of a request."""
    if not line.resource:
        return "", line.path.partition("?")[0], line.verb
    resource = f"{line.resource}/{line.subresource}" if line.subresource else line.resource
    return line.api_group, resource, line.verb


def full_resource(line: Request) -> str:
    """Return the resource of a request with its group."""
    return str(GroupResource(line.api_group, line.resource))


def object_of(line: Request) -> ObjectKey:
    """Return the object of a request."""
    return full_resource(line), line.namespace, line.name


class Tally:
    """Requests of all clients, and the clients that changed each field or object in turns."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str], ClientCounts] = {}
        self.dropped = 0
        """Requests that the server has not told, as there were too many."""
        self._room = Room(MOST_KEYS)
        self._open: BoundedSet[str] = BoundedSet(_MOST_OPEN)
        self._writers: dict[FieldKey, str] = {}
        self.turns: Counter[FieldKey] = Counter()
        """Number of times that another client than the last one changed a field, or an object."""
        self.rivals: dict[FieldKey, set[str]] = {}
        """User agents that changed it in turns."""
        self.changes: Counter[str] = Counter()
        """Writes that changed something, by resource."""

    def begin_server(self) -> None:
        """Begin with the requests to another server: its objects are others, and informers start there anew."""
        self._open = BoundedSet(_MOST_OPEN)
        self._writers.clear()
        for each in self.clients.values():
            each.changes_before = self.changes_seen(each)
            each.watched.clear()
            each.begun.clear()
            each.writes_here.clear()

    def add(self, plain: Mapping[str, Any]) -> None:
        """Count a request. Raises ValueError for a line of another shape."""
        if "dropped" in plain and "verb" not in plain:
            dropped = plain["dropped"]
            if type(dropped) is not int or dropped < 0:
                raise ValueError("no line about dropped requests")
            self.dropped += dropped
            return
        try:
            line = msgspec.convert(dict(plain), Request)
        except msgspec.ValidationError as error:
            raise ValueError(f"no line about a request: {error}") from None
        self.count(line)

    def count(self, line: Request) -> None:
        """Count a request."""
        line = line.bounded()
        if line.verb == "watch" and self._is_known(line):
            return
        agent = line.user_agent.partition(" ")[0]
        key = (agent, line.user)
        if key not in self.clients and len(self.clients) >= MOST_CLIENTS:
            key = (OTHERS, "")
        client = self.clients.get(key)
        if client is None:
            client = self.clients[key] = ClientCounts(*key, self._room)
        client.count(line)
        if line.resource:
            self._follow(line, client)

    def _is_known(self, line: Request) -> bool:
        """Return True for the end of a watch that was counted at its beginning."""
        if not line.open:
            return self._open.has(line.id)
        if line.id:
            self._open.keep(line.id)
        return False

    def _follow(self, line: Request, client: ClientCounts) -> None:
        """Follow the changes to objects and resources, and the watches of them."""
        resource = full_resource(line)
        if line.verb == "watch":
            if line.code < 400 and self._room.key(client.watched, resource, MOST_KINDS, None) is not None:
                client.has_watched = True
                client.watched.setdefault(resource, self.changes[resource] - client.changes[resource])
        elif line.verb in WRITES and line.code < 400 and not line.unchanged:
            resource = self._room.key(self.changes, resource, MOST_KINDS, OTHERS)
            self.changes[resource] += 1
            client.changes[resource] += 1
            if line.verb in ("update", "patch"):
                self._follow_writers(line, client.user_agent)

    def changes_seen(self, client: ClientCounts) -> int:
        """Return the number of changes by other clients to resources that a client watches, since its first watch."""
        here = (self.changes[each] - client.changes[each] - before for each, before in client.watched.items())
        return client.changes_before + sum(here)

    def _follow_writers(self, line: Request, agent: str) -> None:
        about = object_of(line)
        for path in ("",) if line.changed is None else line.changed:
            key = (about, path)
            if self._room.key(self._writers, key, MOST_KEYS, None) is None:
                continue
            last, self._writers[key] = self._writers.get(key), agent
            if last is not None and last != agent:
                self.turns[key] += 1
                rivals = self.rivals.setdefault(key, set())
                if len(rivals) < _MOST_RIVALS:
                    rivals.update((last, agent))
