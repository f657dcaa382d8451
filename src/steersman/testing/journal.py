"""Recent requests to a server for tests, for the report of a failed test."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from steersman.authentication.user import COMPONENTS, UserInfo
from steersman.endpoints.request import Request

_KEPT: Final = 200
_LONGEST_PATH: Final = 300


@dataclass(frozen=True, slots=True)
class Entry:
    """Answered request. It has no query, header or body, as these may contain secrets."""

    verb: str
    path: str
    user: str
    code: int
    milliseconds: float

    def __str__(self) -> str:
        return f"{self.verb:<16} {self.path}  {self.user or '-'}  {self.code}  {self.milliseconds:.1f} ms"


class Journal:
    """Journal of users' requests; controllers, scheduler and nodes are left out."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque(maxlen=_KEPT)

    def note(self, request: Request, code: int, seconds: float) -> None:
        """Record a request and its status code (endpoints.filters.observation)."""
        user: UserInfo | None = request.user  # None if the request was not authenticated
        name = "" if user is None else user.name
        if not name.startswith(COMPONENTS):
            path = request.path[:_LONGEST_PATH]
            verb = request.info.action.verb or request.method
            self.entries.append(Entry(verb, path, name, code, seconds * 1000))

    def clear(self) -> None:
        """Forget all requests so far, such as those that prepared the server."""
        self.entries.clear()

    def lines(self, most: int = 30) -> list[str]:
        """Return the last requests, one per line."""
        return [str(each) for each in list(self.entries)[-most:]]
