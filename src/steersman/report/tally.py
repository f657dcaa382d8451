"""Counts of requests by client, from the lines that /debug/requests serves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from steersman.machinery.identity.schema import GroupResource

MOST_CLIENTS: Final = 500
"""Clients that are counted; further ones are counted together."""
MOST_OBJECTS: Final = 10_000
"""Objects of a client whose writes are counted one by one."""
MOST_KINDS: Final = 2_000
"""Pairs of verb and resource of a client that are counted one by one."""
_MOST_TEXT: Final = 256
WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_CHANGES: Final = frozenset({"create", "update", "patch", "delete"})
OTHERS: Final = "(others)"

Target = tuple[str, str, str]
"""Group, resource with its subresource, and verb; for a path without a resource "", the path and the verb."""
ObjectKey = tuple[str, str, str]
"""Resource with its group, namespace and name of an object."""


class Request(msgspec.Struct, rename="camel"):
    """The members of a line that are counted."""

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


class ClientCounts:
    """Requests of one client."""

    def __init__(self, user_agent: str, user: str) -> None:
        self.user_agent = user_agent
        self.user = user
        self.requests: Counter[Target] = Counter()
        self.codes: Counter[int] = Counter()
        self.failed: Counter[Target] = Counter()
        self.unchanged: Counter[ObjectKey] = Counter()
        """Writes that left an object as it was."""
        self.writes: Counter[ObjectKey] = Counter()
        self.unlimited: Counter[Target] = Counter()
        """Lists without a limit and without a selector."""
        self.watches: Counter[Target] = Counter()
        self.allowed: set[Target] = set()
        """Requests that were not refused for lack of rights."""
        self.milliseconds = 0.0

    @property
    def total(self) -> int:
        """Number of requests."""
        return sum(self.codes.values())

    def count(self, line: Request) -> None:
        """Count a request."""
        target = target_of(line)
        if target not in self.requests and len(self.requests) >= MOST_KINDS:
            target = ("", OTHERS, line.verb[:_MOST_TEXT])
        self.requests[target] += 1
        self.codes[line.code] += 1
        if line.code >= 400:
            self.failed[target] += 1
        if line.code not in (401, 403):
            self.allowed.add(target)
        if line.verb == "list" and line.limited is False:
            self.unlimited[target] += 1
        if line.verb == "watch":
            self.watches[target] += 1
        else:
            self.milliseconds += line.milliseconds
        if line.verb in _CHANGES and line.code < 400 and line.resource:
            self._count_write(line)

    def _count_write(self, line: Request) -> None:
        key = object_of(line)
        if key not in self.writes and len(self.writes) >= MOST_OBJECTS:
            key = (OTHERS, "", "")
        self.writes[key] += 1
        if line.unchanged:
            self.unchanged[key] += 1


def target_of(line: Request) -> Target:
    """Return the target of a request."""
    if not line.resource:
        return "", line.path.partition("?")[0][:_MOST_TEXT], line.verb
    resource = f"{line.resource}/{line.subresource}" if line.subresource else line.resource
    return line.api_group, resource, line.verb


def object_of(line: Request) -> ObjectKey:
    """Return the object of a request."""
    return str(GroupResource(line.api_group, line.resource)), line.namespace, line.name


class Tally:
    """Requests of all clients, and the clients that wrote each object one after the other."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str], ClientCounts] = {}
        self.dropped = 0
        """Requests that the server has not told, as there were too many."""
        self._writers: dict[ObjectKey, str] = {}
        self.turns: Counter[ObjectKey] = Counter()
        """Number of times that another client than the last one changed an object."""
        self.rivals: dict[ObjectKey, set[str]] = {}
        """User agents that changed an object."""

    def add(self, plain: Mapping[str, Any]) -> None:
        """Count a request. Raises ValueError for a line of another shape."""
        if "dropped" in plain and "verb" not in plain:
            self.dropped += msgspec.convert(plain["dropped"], int)
            return
        try:
            line = msgspec.convert(dict(plain), Request)
        except msgspec.ValidationError as error:
            raise ValueError(f"no line about a request: {error}") from None
        agent = line.user_agent.partition(" ")[0][:_MOST_TEXT]
        key = (agent, line.user[:_MOST_TEXT])
        if key not in self.clients and len(self.clients) >= MOST_CLIENTS:
            key = (OTHERS, "")
        client = self.clients.get(key)
        if client is None:
            client = self.clients[key] = ClientCounts(*key)
        client.count(line)
        if line.verb in ("update", "patch") and line.code < 400 and line.resource and not line.unchanged:
            self._follow_writers(line, agent)

    def _follow_writers(self, line: Request, agent: str) -> None:
        key = object_of(line)
        last = self._writers.get(key)
        if last is None and len(self._writers) >= MOST_OBJECTS:
            return
        self._writers[key] = agent
        self.rivals.setdefault(key, set()).add(agent)
        if last is not None and last != agent:
            self.turns[key] += 1
