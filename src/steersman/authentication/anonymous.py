"""Authentication of requests without credentials as `system:anonymous`, for all or certain paths."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.authentication.interface import Credentials
from steersman.authentication.user import ALL_UNAUTHENTICATED, ANONYMOUS, UserInfo

ANONYMOUS_USER: Final = UserInfo(ANONYMOUS, groups=(ALL_UNAUTHENTICATED,))


class AnonymousAuthenticator:
    """Authenticates every request as anonymous; with `paths`, only requests for exactly these paths."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._paths = frozenset(paths)

    def authenticate(self, credentials: Credentials) -> UserInfo | None:
        """Return the anonymous user, or None for a path on which anonymous requests are not allowed."""
        if self._paths and credentials.path not in self._paths:
            return None
        return ANONYMOUS_USER
