"""Tokens that a server issues to components of its own process, as kube-apiserver does for its loopback client."""

from __future__ import annotations

import secrets

from steersman.authentication.token_file import StaticTokens
from steersman.authentication.user import UserInfo


class IssuedTokens(StaticTokens):
    """Issuer and authenticator of tokens that are valid for the lifetime of the process."""

    def __init__(self, audiences: tuple[str, ...] = ()) -> None:
        super().__init__({}, audiences)

    def issue(self, user: UserInfo) -> str:
        """Return a new token of this user."""
        token = secrets.token_urlsafe(32)
        self.add(token, user)
        return token
