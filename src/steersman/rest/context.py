"""The request context that strategies, stores and admission plugins see."""

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
"""The most characters that the Warning headers of one answer hold in all."""
MAX_LONG_WARNING_RUNES: Final = 256
"""The length in characters to which each warning is cut when all of them together are too long."""


class Context(Struct):
    """A request as the floors below HTTP see it.

    `action` is the verb and its target. `dry_run` runs everything but the commit. `warnings` are sent to the client as
    Warning headers. `inquiry_result` is the result of an Inquiry, for validation, which cannot wait. `audit` is the
    audit trail of the request, None if it has none. `newest` is the revision of storage when the request arrived, 0 if
    unknown: a cache that has reached it contains every write that was acknowledged before. `as_of` is the revision at
    which a get or list is answered as by a cache that lags behind, 0 otherwise.
    """

    user: UserInfo = ANONYMOUS
    action: Action = NO_ACTION
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    inquiry_result: Any = None
    audit: Trail | None = None
    newest: int = 0
    as_of: int = 0
    _recorded: dict[str, int] = field(default_factory=dict)
    """Total length of the warnings up to and with each warning, if all are cut; by warning."""

    def warn(self, text: str) -> None:
        """Add a warning for the client, unless it has been added already."""
        if text not in self._recorded:
            length = min(len(text), MAX_LONG_WARNING_RUNES) if text.isprintable() else 0
            self._recorded[text] = self._warning_runes + length
            self.warnings.append(text)

    @property
    def _warning_runes(self) -> int:
        return next(reversed(self._recorded.values()), 0)

    def warn_all(self, texts: Iterable[str]) -> None:
        """Add warnings until the answer has no room for more, as the rest would not be sent."""
        for text in texts:
            if self._warning_runes > MAX_WARNING_RUNES:
                return
            self.warn(text)


def loopback(namespace: str = "", name: str = "") -> Context:
    """Return a context of the server's own identity, for writes of the server itself."""
    return Context(LOOPBACK, Action(namespace=namespace, name=name))
