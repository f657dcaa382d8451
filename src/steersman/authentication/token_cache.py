"""Good tokens are good for a while (k8s.io/apiserver `authentication/token/cache`)."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Final

from steersman.authentication.interface import TokenAuthenticator, TokenIdentity

SUCCESS_SECONDS: Final = 10.0
"""How long a token that was good is not looked at again: as long it may outlive what it is bound to."""
MAX_TOKENS: Final = 4096


class CachedTokenAuthenticator:
    """Asks `authenticator`, and remembers whose the good tokens are. Refusals are not remembered.

    Tokens are kept as keyed digests: no token can be read from memory here, and nobody can compute where one is kept.
    Of more than `size` tokens those that were used longest ago are forgotten.
    """

    def __init__(
        self,
        authenticator: TokenAuthenticator,
        *,
        seconds: float = SUCCESS_SECONDS,
        size: int = MAX_TOKENS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._authenticator = authenticator
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._secret = os.urandom(32)
        self._known: OrderedDict[bytes, tuple[TokenIdentity, float]] = OrderedDict()

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """See TokenAuthenticator."""
        key = self._digest(token, audiences)
        known = self._known.get(key)
        if known is not None:
            if known[1] > self._clock():
                self._known.move_to_end(key)
                return known[0]
            del self._known[key]
        identity = self._authenticator.authenticate_token(token, audiences)
        if identity is None:
            return None
        if not isinstance(identity, TokenIdentity):
            return self._wait(key, identity)
        self._remember(key, identity)
        return identity

    async def _wait(self, key: bytes, pending: Awaitable[TokenIdentity | None]) -> TokenIdentity | None:
        identity = await pending
        if identity is not None:
            self._remember(key, identity)
        return identity

    def _remember(self, key: bytes, identity: TokenIdentity) -> None:
        self._known[key] = identity, self._clock() + self._seconds
        self._known.move_to_end(key)
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def _digest(self, token: str, audiences: tuple[str, ...]) -> bytes:
        """Another one for every token and list of audiences: each text stands behind its length."""
        digest = blake2b(key=self._secret, digest_size=32)
        for text in (token, *audiences):
            data = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(data))
            digest.update(data)
        return digest.digest()
