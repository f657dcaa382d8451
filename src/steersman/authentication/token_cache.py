"""Cache of token authentication (k8s.io/apiserver `authentication/token/cache`)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import blake2b
from typing import Final

import msgspec

from steersman.authentication.interface import AuthenticationError, TokenAuthenticator, TokenIdentity
from steersman.machinery.errors.status import too_many_requests
from steersman.machinery.values import times
from steersman.work.bounded_cache import BoundedCache
from steersman.work.single_flight import SingleFlight

SUCCESS_SECONDS: Final = 10.0
"""Seconds for which a valid token is cached; as long it may outlive its bound object."""
MAX_TOKENS: Final = 16_384
MOST_WAITING: Final = 1_024
"""Limit of concurrent look-ups: invented tokens must not exhaust memory while a webhook does not answer."""
_RETRY_SECONDS: Final = 1
LOOKUP_SECONDS: Final = 30.0
"""Seconds allowed for a look-up. Several requests may share it, so that their deadlines do not apply to it."""


class CachedTokenAuthenticator:
    """Cache in front of `authenticator`. Errors are not cached; unknown tokens are, for `unknown_seconds`.

    Keys are keyed digests: no token can be read from memory here, and nobody can compute collisions. Up to `size` valid
    tokens, and as many unknown ones, are cached; frequently used ones stay. Concurrent requests for a token share a
    look-up.
    """

    def __init__(
        self,
        authenticator: TokenAuthenticator,
        *,
        seconds: float = SUCCESS_SECONDS,
        unknown_seconds: float = 0.0,
        size: int = MAX_TOKENS,
        clock: Callable[[], float] = times.monotonic,
    ) -> None:
        self._authenticator = authenticator
        self._seconds = seconds
        self._unknown_seconds = unknown_seconds
        self._clock = clock
        self._secret = os.urandom(32)
        self._cache: BoundedCache[bytes, tuple[TokenIdentity, float]] = BoundedCache(size)
        self._unknown: BoundedCache[bytes, float] = BoundedCache(size)
        """Expiry of unknown tokens, in a cache of their own so that invented tokens do not evict valid ones."""
        self._flights: SingleFlight[bytes, TokenIdentity | None] = SingleFlight()

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """Authenticate a token. See TokenAuthenticator. Raises StatusError 429 if too many look-ups are in progress."""
        key = self._digest(token, audiences)
        known = self._cache[key]
        if known is not None and known[1] > self._clock():
            return known[0]
        if (self._unknown[key] or 0.0) > self._clock():
            return None
        asked = self._flights.get(key)
        if asked is not None:
            return asked
        if len(self._flights) >= MOST_WAITING:
            raise too_many_requests("too many tokens are being looked up, please try again later", _RETRY_SECONDS)
        identity = self._authenticator.authenticate_token(token, audiences)
        if identity is None or isinstance(identity, TokenIdentity):
            self._remember(key, identity)
            return identity
        return self._flights.begin(key, partial(self._wait, key, identity))

    async def _wait(self, key: bytes, pending: Awaitable[TokenIdentity | None]) -> TokenIdentity | None:
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                identity = await pending
        except TimeoutError:
            raise AuthenticationError("context deadline exceeded") from None
        self._remember(key, identity)
        return identity

    def _remember(self, key: bytes, identity: TokenIdentity | None) -> None:
        if identity is None:
            if self._unknown_seconds:
                self._unknown.keep(key, self._clock() + self._unknown_seconds)
        elif self._seconds:
            self._cache.keep(key, (identity, self._clock() + self._seconds))

    def _digest(self, token: str, audiences: tuple[str, ...]) -> bytes:
        """Return a digest of the token and its audiences; of many audiences within milliseconds."""
        return blake2b(msgspec.json.encode((token, audiences)), key=self._secret, digest_size=32).digest()
