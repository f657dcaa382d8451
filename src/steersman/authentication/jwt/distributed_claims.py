"""Distributed claims: claims that a token refers to instead of containing them (OpenID Connect Core 1.0, 5.6.2).

As upstream, only the claim of groups is resolved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from steersman.authentication.interface import AuthenticationError
from steersman.authentication.jwt.fetching import Fetch, FetchError
from steersman.authentication.jwt.id_token import untrusted_issuer
from steersman.machinery.errors.field import quote
from steersman.machinery.go.urls import redacted_url

_NAMES: Final = "_claim_names"
_SOURCES: Final = "_claim_sources"
_WHERE: Final = "oidc: could not expand distributed claims: "
MOST_ISSUERS: Final = 64
"""Limit of issuers of distributed claims that are remembered per issuer of tokens."""


class _Endpoint(msgspec.Struct, frozen=True):
    endpoint: str = ""
    access_token: str = ""


class Verifier(Protocol):
    """A verifier of one issuer's tokens."""

    async def verified_claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token of the issuer. Raises AuthenticationError."""
        ...


class DistributedClaims:
    """Resolver of one distributed claim.

    `verifier` returns the verifier of an issuer; None until its keys are known, whose discovery the first call starts.
    """

    def __init__(self, claim: str, fetch: Fetch, verifier: Callable[[str], Verifier | None]) -> None:
        self._claim = claim
        self._fetch = fetch
        self._verifier = verifier
        self._issuers: set[str] = set()

    def has_to_ask(self, claims: dict[str, Any]) -> bool:
        """Return True if a document may have to be fetched for these claims."""
        return self._claim not in claims and _NAMES in claims

    async def expand(self, claims: dict[str, Any]) -> None:
        """Resolve the claim and add it to `claims` if they refer to it. Raises AuthenticationError."""
        endpoint = self._endpoint(claims)
        if endpoint is None or not endpoint.endpoint:
            return
        try:
            claims[self._claim] = await self._resolve(endpoint)
        except AuthenticationError as error:
            raise AuthenticationError(f"{_WHERE}{error}") from None

    def _endpoint(self, claims: dict[str, Any]) -> _Endpoint | None:
        try:
            names = msgspec.convert(claims[_NAMES], dict[str, str])
        except msgspec.ValidationError:
            raise AuthenticationError(f"{_WHERE}oidc: error parsing distributed claim names") from None
        if _SOURCES not in claims:
            raise AuthenticationError(f"{_WHERE}oidc: no claim sources")
        try:
            sources = msgspec.convert(claims[_SOURCES], dict[str, _Endpoint])
        except msgspec.ValidationError:
            raise AuthenticationError(f"{_WHERE}oidc: could not parse claim sources") from None
        source = names.get(self._claim)
        if source is None:
            return None
        if source not in sources:
            raise AuthenticationError(
                f"{_WHERE}id token _claim_names contained a source {source} missing in _claims_sources"
            )
        return sources[source]

    async def _resolve(self, endpoint: _Endpoint) -> Any:
        url, claim = endpoint.endpoint, self._claim
        try:
            document = await self._fetch(url, endpoint.access_token)
        except FetchError as error:
            raise AuthenticationError(f"while getting distributed claim {quote(claim)}: {error}") from None
        token = document.body.decode("utf-8", "replace")
        issuer = untrusted_issuer(token)
        if not issuer:
            raise AuthenticationError(
                f"getting untrusted issuer from endpoint {redacted_url(url)} failed for claim {quote(claim)}: "
                "malformed token"
            )
        if issuer not in self._issuers and len(self._issuers) >= MOST_ISSUERS:
            raise AuthenticationError(f"more than {MOST_ISSUERS} issuers of distributed claims")
        self._issuers.add(issuer)
        verifier = self._verifier(issuer)
        if verifier is None:
            raise AuthenticationError(
                f"verifying untrusted issuer {issuer} failed: verifier not initialized for issuer: {quote(issuer)}"
            )
        try:
            found = await verifier.verified_claims(token)
        except AuthenticationError as error:
            raise AuthenticationError(f"verify distributed claim token: {error}") from None
        if claim not in found:
            raise AuthenticationError(
                f"jwt returned by distributed claim endpoint {quote(redacted_url(url))} did not contain claim: {claim}"
            )
        return found[claim]
