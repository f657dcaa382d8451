"""What is known of a token is known for a while (k8s.io/apiserver `authentication/token/cache`)."""

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
"""How long a token that was good is not looked at again: as long it may outlive what it is bound to."""
MAX_TOKENS: Final = 16_384
MOST_WAITING: Final = 1_024
"""Tokens that are asked about at once: made-up ones are not to fill the memory while nobody answers."""
_RETRY_SECONDS: Final = 1
LOOKUP_SECONDS: Final = 30.0
"""How long an answer is waited for on which several requests may depend; whose deadlines do not count for it."""


class CachedTokenAuthenticator:
    """Asks `authenticator`, and remembers whose the good tokens are. What it raises is not remembered; that it does not
    know a token is for `unknown_seconds`.

    Tokens are kept as keyed digests: no token can be read from memory here, and nobody can compute where one is kept.
    Of `size` good tokens, and as many others, those that are asked for often are kept. Who asks for a token that is
    being asked about waits for the same answer.
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
        self._known: BoundedCache[bytes, tuple[TokenIdentity, float]] = BoundedCache(size)
        self._unknown: BoundedCache[bytes, float] = BoundedCache(size)
        """Until when. Apart from the good ones, which nobody is to drive out by tokens that are made up."""
        self._asked: SingleFlight[bytes, TokenIdentity | None] = SingleFlight()

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """See TokenAuthenticator. Raises StatusError 429 for a token more than may be asked about at once."""
        key = self._digest(token, audiences)
        known = self._known[key]
        if known is not None and known[1] > self._clock():
            return known[0]
        if (self._unknown[key] or 0.0) > self._clock():
            return None
        asked = self._asked.get(key)
        if asked is not None:
            return asked
        if len(self._asked) >= MOST_WAITING:
            raise too_many_requests("too many tokens are being looked up, please try again later", _RETRY_SECONDS)
        identity = self._authenticator.authenticate_token(token, audiences)
        if identity is None or isinstance(identity, TokenIdentity):
            self._remember(key, identity)
            return identity
        return self._asked.begin(key, partial(self._wait, key, identity))

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
            self._known.keep(key, (identity, self._clock() + self._seconds))

    def _digest(self, token: str, audiences: tuple[str, ...]) -> bytes:
        """Another one for every token and list of audiences; of many audiences within milliseconds."""
        return blake2b(msgspec.json.encode((token, audiences)), key=self._secret, digest_size=32).digest()
