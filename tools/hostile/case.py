"""Cases: each makes a message of any size for the server that it is sent to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

NAMESPACE: Final = "hostile"
"""Namespace in which `NARROW` has all rights; it has none elsewhere."""
CROWDED: Final = "hostile-crowded"
"""A namespace of many ConfigMaps, in which `NARROW` may do everything too."""
CROWD: Final = 5000

ADMIN: Final = "admin-token"
NARROW: Final = "alice-token"
ANONYMOUS: Final = ""
OTHER: Final = "bob-token"
"""Somebody who has no part in it: no case is sent in the name of this user, whose requests have to be answered."""

USERS: Final = {ANONYMOUS: "anonymous", NARROW: "narrow", ADMIN: "admin"}

Header = tuple[str, str]


@dataclass(frozen=True)
class Request:
    """One HTTP request; `token` is whose it is, and `protocol` what it is sent by: http/1.1 or h2 (without a body)."""

    method: str
    target: str
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    token: str = NARROW
    protocol: str = "http/1.1"

    @property
    def size(self) -> int:
        return len(self.target) + len(self.body) + sum(len(name) + len(value) for name, value in self.headers)


@dataclass(frozen=True)
class Bytes:
    """Bytes that are written to a connection as they are, after the negotiation of `protocol`.

    Over HTTP/1.1 the last request must ask to close the connection. Over HTTP/2 a PING is added, and its answer is
    awaited.
    """

    data: bytes
    protocol: str = "http/1.1"

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass(frozen=True)
class Unread:
    """Bytes that are written on each of so many connections, of which nothing is read.

    Over HTTP/2 all windows are 0, over HTTP/1.1 the client takes as little as it can. The connections stay open for
    `seconds`, in which others are served or are not.
    """

    data: bytes
    protocol: str = "h2"
    connections: int = 1
    seconds: float = 2.0

    @property
    def size(self) -> int:
        return len(self.data)


Message = Request | Bytes | Unread


class Target(Protocol):
    """A server as cases need it."""

    def existing(self, path: str, collection: str, body: dict[str, Any]) -> dict[str, Any]:
        """The object at `path` as the server has it, made of `body` if there is none; `body` if it cannot be made."""
        ...

    def ask(self, request: Request) -> tuple[int, bytes]:
        """Status and body of an ordinary request."""
        ...


Make = Callable[[int, Target], Message | None]


@dataclass(frozen=True)
class Case:
    """`make(size, target)` is a message of about `size` bytes; None if there is none of that size.

    `group` is what cases are taken from in turn, so that few of them are of many groups.
    """

    name: str
    make: Make
    group: str = ""
    largest: int = 3_000_000
    crowd: bool = False
    """True if the case needs the ConfigMaps of `CROWDED`."""
    sizes: tuple[int, ...] = field(default=())
    """Its own sizes, in place of those asked for."""
    takes_seats: bool = False
    """True if the case takes all seats of a priority level, as users may.

    Others of the level wait, on the reference too, so their wait is not judged.
    """
    lasting: float = 0.0
    """Seconds in which the server still works for it after the answer."""


Generator = Callable[[], Iterable[Case]]


def repeated(unit: str, size: int) -> str:
    """`unit` as often as `size` characters have it."""
    return unit * max(size // len(unit), 1)


def numbered(form: str, size: int, start: int = 0) -> list[str]:
    """`form` with numbers for `{i}`, together about `size` characters."""
    count = max(size // (len(form) + 2), 1)
    return [form.replace("{i}", str(i)) for i in range(start, start + count)]
