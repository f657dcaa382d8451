"""Tokens that a server gives to parts of its own process, as kube-apiserver does for its loopback client."""

from __future__ import annotations

import secrets

from steersman.authentication.token_file import StaticTokens
from steersman.authentication.user import UserInfo


class IssuedTokens(StaticTokens):
    """Knows the tokens that it has issued, for as long as the process lives."""

    def __init__(self, audiences: tuple[str, ...] = ()) -> None:
        super().__init__({}, audiences)

    def issue(self, user: UserInfo) -> str:
        """A token of this user."""
        token = secrets.token_urlsafe(32)
        self.add(token, user)
        return token
