"""Discovery of an issuer, and its keys, which are fetched when a token needs unknown ones.

Follows kube-apiserver's library (go-oidc `NewProvider`, `RemoteKeySet`) with its texts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from steersman.authentication.interface import AuthenticationError
from steersman.authentication.jwt.fetching import Document, Fetch, FetchError
from steersman.authentication.jwt.id_token import CompactToken
from steersman.authentication.jwt.key_set import KeySetError, PublicKey, candidates, read_keys, verified
from steersman.authentication.jwt.metrics import IssuerMetrics
from steersman.machinery.codec.json_syntax import syntax_error
from steersman.machinery.errors.field import quote
from steersman.machinery.values import times
from steersman.net.ascii import SPACE, lower
from steersman.work.offloading import offload_if
from steersman.work.single_flight import SingleFlight

WELL_KNOWN: Final = "/.well-known/openid-configuration"
_DELTA: Final = 30.0
"""Remaining seconds of validity below which keys are fetched again."""
_SHOWN: Final = 1024
"""Limit of characters of an issuer's answer that errors quote, as each error is logged."""
_FEW: Final = 4
"""Number of keys up to which a signature is verified on the event loop: each key takes milliseconds."""
_NOT_SIGNED: Final = "failed to verify signature: failed to verify id token signature"


class ProviderError(Exception):
    """An issuer that cannot be used yet."""


class _Discovery(msgspec.Struct, frozen=True):
    """The used members of a discovery document (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str = ""
    jwks_uri: str = ""


async def discover(issuer: str, discovery_url: str, fetch: Fetch) -> str:
    """Return the URL of an issuer's keys.

    `discovery_url` is the URL of the discovery document if it is not below the issuer's URL. Raises ProviderError.
    """
    try:
        document = await fetch(discovery_url or issuer.removesuffix("/") + WELL_KNOWN, "")
    except FetchError as error:
        raise ProviderError(str(error)) from None
    try:
        found = msgspec.json.decode(document.body, type=_Discovery)
    except (ValueError, RecursionError):
        raise ProviderError(f"oidc: failed to decode provider discovery object: {_undecoded(document)}") from None
    if found.issuer != issuer:
        raise ProviderError(
            "oidc: issuer did not match the issuer returned by provider, "
            f"expected {quote(issuer)} got {quote(found.issuer[:_SHOWN])}"
        )
    if not found.jwks_uri:
        raise ProviderError("provider did not return JWKS URL")
    return found.jwks_uri


def _undecoded(document: Document) -> str:
    why = syntax_error(document.body) or "it is of another shape"
    if lower(document.content_type.partition(";")[0].strip(SPACE)) == "application/json":
        return f"got Content-Type = application/json, but could not unmarshal as JSON: {why}"
    return f"expected Content-Type = application/json, got {quote(document.content_type[:_SHOWN])}: {why}"


class RemoteKeys:
    """The keys at a URL.

    Known keys are tried first, regardless of their age. Unknown ones are fetched by one request at a time, shared by
    all tokens that wait for them.
    """

    def __init__(
        self, url: str, fetch: Fetch, metrics: IssuerMetrics, clock: Callable[[], float] = times.monotonic
    ) -> None:
        """`clock` is monotonic, in seconds."""
        self._url = url
        self._fetch = fetch
        self._metrics = metrics
        self._clock = clock
        self._keys: tuple[PublicKey, ...] = ()
        self._good_until = 0.0
        self._fetching: SingleFlight[str, tuple[PublicKey, ...]] = SingleFlight()
        self._room = asyncio.Semaphore(1)

    def close(self) -> None:
        """Cancel a request in progress."""
        self._fetching.cancel()

    def verify(self, token: CompactToken) -> bytes | Awaitable[bytes]:
        """Return the payload of a token, at once if a known key has signed it. Raises AuthenticationError."""
        if candidates(token, self._keys) > _FEW:
            return self._verify_with_many(token)
        payload = verified(token, self._keys)
        if payload is not None:
            return payload
        self._check_age()
        return self._verify_with_others(token)

    def _check_age(self) -> None:
        """Raise AuthenticationError while the known keys are fresh."""
        if self._clock() + _DELTA <= self._good_until:
            raise AuthenticationError(_NOT_SIGNED)

    async def _verify_with_many(self, token: CompactToken) -> bytes:
        payload = await self._tried(token, self._keys)
        if payload is not None:
            return payload
        self._check_age()
        return await self._verify_with_others(token)

    async def _tried(self, token: CompactToken, keys: tuple[PublicKey, ...]) -> bytes | None:
        """Return the payload if one of the keys has signed it, or None.

        Many keys are tried in a worker thread, for one token at a time.
        """
        if candidates(token, keys) <= _FEW:
            return verified(token, keys)
        async with self._room:
            return await offload_if(True, verified, token, keys)

    async def _verify_with_others(self, token: CompactToken) -> bytes:
        try:
            keys = await self._fetching.do(self._url, self._update)
        except (FetchError, KeySetError) as error:
            raise AuthenticationError(f"failed to verify signature: fetching keys {error}") from None
        payload = await self._tried(token, keys)
        if payload is None:
            raise AuthenticationError(_NOT_SIGNED)
        return payload

    async def _update(self) -> tuple[PublicKey, ...]:
        began = self._clock()
        try:
            document = await self._fetch(self._url, "")
            keys = await offload_if(True, read_keys, document.body)
        except FetchError as error:
            self._metrics.keys_failed()
            raise FetchError(f"oidc: get keys failed {error}") from None
        except KeySetError as error:
            self._metrics.keys_failed()
            shown = document.body.decode("utf-8", "replace")[:_SHOWN]
            raise KeySetError(f"oidc: failed to decode keys: {error} {shown}") from None
        self._metrics.keys_fetched(document.body)
        self._keys, self._good_until = keys, began + document.good_for
        return keys
