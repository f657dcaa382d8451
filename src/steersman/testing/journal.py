"""The last requests that a server for tests has answered, for the report of a test that fails."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from steersman.endpoints.request import Request

_KEPT: Final = 200
_OWN: Final = (
    "system:apiserver",
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:serviceaccount:kube-system:",
    "steersman:",
)
"""How the names begin of those who work on the cluster itself."""
_LONGEST_PATH: Final = 300


@dataclass(frozen=True, slots=True)
class Entry:
    """A request that was answered. There is no query, no header and no body in it, as these may hold secrets."""

    verb: str
    path: str
    user: str
    code: int
    milliseconds: float

    def __str__(self) -> str:
        return f"{self.verb:<16} {self.path}  {self.user or '-'}  {self.code}  {self.milliseconds:.1f} ms"


class Journal:
    """Notes what users ask; controllers, scheduler and nodes are left out."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque(maxlen=_KEPT)

    def note(self, request: Request, code: int, seconds: float) -> None:
        """Notes a request and its answer (endpoints.filters.observation)."""
        user = getattr(request, "user", None)  # one whose credentials are not good has none
        name = "" if user is None else user.name
        if not name.startswith(_OWN):
            path = request.path[:_LONGEST_PATH]
            verb = request.info.action.verb or request.method
            self.entries.append(Entry(verb, path, name, code, seconds * 1000))

    def clear(self) -> None:
        """Forgets what was asked so far, such as by those who prepared the server."""
        self.entries.clear()

    def lines(self, most: int = 30) -> list[str]:
        """The last requests, one a line."""
        return [str(each) for each in list(self.entries)[-most:]]
