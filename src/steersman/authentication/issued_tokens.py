"""Tokens that a server gives to parts of its own process, as kube-apiserver does for its loopback client."""

from __future__ import annotations

import secrets
from hashlib import sha256

from steersman.authentication.interface import TokenIdentity
from steersman.authentication.user import UserInfo, authenticated


class IssuedTokens:
    """Knows the tokens that it has issued, for as long as the process lives; they are kept as SHA-256 digests."""

    def __init__(self, audiences: tuple[str, ...] = ()) -> None:
        self._audiences = audiences
        self._identities: dict[bytes, TokenIdentity] = {}

    def issue(self, user: UserInfo) -> str:
        """A token of this user."""
        token = secrets.token_urlsafe(32)
        self._identities[sha256(token.encode()).digest()] = TokenIdentity(authenticated(user), self._audiences)
        return token

    def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> TokenIdentity | None:
        if not self._identities:
            return None
        identity = self._identities.get(sha256(token.encode("utf-8", "surrogateescape")).digest())
        if identity is None or not audiences or audiences == self._audiences:
            return identity
        common = tuple(each for each in self._audiences if each in audiences)
        return TokenIdentity(identity.user, common) if common else None
