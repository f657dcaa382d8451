"""What a strategy, a store or an admission plugin may know of the request it works for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct, field

from steersman.audit.trail import Trail
from steersman.authentication import user
from steersman.authentication.user import UserInfo
from steersman.machinery.identity.action import NO_ACTION, Action

ANONYMOUS: Final = UserInfo(user.ANONYMOUS, groups=(user.ALL_UNAUTHENTICATED,))
LOOPBACK: Final = UserInfo(user.API_SERVER, groups=(user.SYSTEM_MASTERS,))

MAX_WARNING_RUNES: Final = 4096
"""What the Warning headers of one answer may hold in all, in characters."""
MAX_LONG_WARNING_RUNES: Final = 256
"""What is left of each of them when they are too long in all."""


class Context(Struct):
    """The request as far as the floors below HTTP see it.

    `action` is what it does, and to what. `dry_run` goes the whole way but the commit.
    `warnings` are sent to the client as Warning headers. `found` is what an Inquiry found out for validation, which
    cannot wait. `audit` is what is recorded of the request, None for nothing. `newest` is the revision of storage when
    the request came, 0 if unknown: a cache that shows it has everything that was acknowledged before.
    """

    user: UserInfo = ANONYMOUS
    action: Action = NO_ACTION
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    found: Any = None
    audit: Trail | None = None
    newest: int = 0
    _told: dict[str, int] = field(default_factory=dict)
    """The warnings, each with how long they were so far if each is cut."""

    def warn(self, text: str) -> None:
        """Adds a warning for the client, once."""
        if text not in self._told:
            length = min(len(text), MAX_LONG_WARNING_RUNES) if text.isprintable() else 0
            self._told[text] = self._told_runes + length
            self.warnings.append(text)

    @property
    def _told_runes(self) -> int:
        return next(reversed(self._told.values()), 0)

    def warn_all(self, texts: Iterable[str]) -> None:
        """Adds warnings as long as there is room for them in the answer: those that follow would not be sent."""
        for text in texts:
            if self._told_runes > MAX_WARNING_RUNES:
                return
            self.warn(text)


def loopback(namespace: str = "", name: str = "") -> Context:
    """The server's own context, for what it writes by itself."""
    return Context(LOOPBACK, Action(namespace=namespace, name=name))
