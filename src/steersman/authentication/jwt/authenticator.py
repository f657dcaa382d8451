"""Authenticators of OpenID providers' tokens (apiserver `plugin/pkg/authenticator/token/oidc`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from steersman.api.apiserver.v1 import AuthenticationConfiguration, JWTAuthenticator
from steersman.authentication.interface import AuthenticationError, TokenIdentity
from steersman.authentication.jwt.distributed_claims import DistributedClaims, Verifier
from steersman.authentication.jwt.fetching import Fetch, Fetcher, FetchError
from steersman.authentication.jwt.id_token import (
    Expectations,
    check_token,
    claims_of,
    parse_token,
    read_token,
    untrusted_issuer,
)
from steersman.authentication.jwt.mapping import ClaimMapper
from steersman.authentication.jwt.metrics import IssuerMetrics, JWTMetrics
from steersman.authentication.jwt.provider import ProviderError, RemoteKeys, discover
from steersman.authentication.user import UserInfo, authenticated
from steersman.machinery.errors.field import quote
from steersman.machinery.metrics import Registry
from steersman.machinery.values import times
from steersman.net.client.egress import USUAL, Dial, Egress
from steersman.work.offloading import current
from steersman.work.shielding import shielded

logger = logging.getLogger(__name__)

RETRY: Final = 10.0
"""Seconds between attempts to discover an issuer."""
_LONGEST_NAME: Final = 256
"""Limit of characters of the account for work on a token whose user is not known yet."""


class ProviderTokens:
    """Verifier of one issuer's tokens. Discovery of the issuer starts at once, and is retried until it succeeds.

    `clock` returns seconds since the epoch.
    """

    def __init__(
        self,
        expected: Expectations,
        discovery_url: str,
        fetch: Fetch,
        metrics: IssuerMetrics,
        clock: Callable[[], float] = times.unix_now,
    ) -> None:
        self._expected = expected
        self._discovery_url = discovery_url
        self._fetch = fetch
        self._metrics = metrics
        self._clock = clock
        self._keys: RemoteKeys | None = None
        self.fault = f"oidc: authenticator for issuer {quote(expected.issuer)} is not initialized"
        """Reason why tokens cannot be verified yet, "" once they can."""
        self._discovering = asyncio.create_task(self._discover())

    async def close(self) -> None:
        """Stop discovery and fetching of keys."""
        self._discovering.cancel()
        await asyncio.gather(self._discovering, return_exceptions=True)
        if self._keys is not None:
            self._keys.close()

    async def discovered(self) -> None:
        """Return once tokens can be verified."""
        await shielded(self._discovering)

    @property
    def is_ready(self) -> bool:
        """True once tokens can be verified."""
        return self._keys is not None

    async def _discover(self) -> None:
        while True:
            try:
                url = await discover(self._expected.issuer, self._discovery_url, self._fetch)
            except ProviderError as error:
                logger.error("oidc authenticator: initializing plugin: %s", error)
                self.fault = str(error)
            else:
                self._keys = RemoteKeys(url, self._fetch, self._metrics)
                self.fault = ""
                return
            await asyncio.sleep(RETRY)

    def claims(self, token: str) -> dict[str, Any] | Awaitable[dict[str, Any]]:
        """Return the claims of a token, at once if the known keys suffice. Raises AuthenticationError."""
        if self._keys is None:
            raise AuthenticationError("oidc: authenticator not initialized")
        try:
            payload = self._keys.verify(parse_token(token, self._expected))
            if isinstance(payload, bytes):
                return self._checked(payload)
        except AuthenticationError as error:
            raise AuthenticationError(f"oidc: verify token: {error}") from None
        return self._wait(payload)

    async def _wait(self, pending: Awaitable[bytes]) -> dict[str, Any]:
        try:
            return self._checked(await pending)
        except AuthenticationError as error:
            raise AuthenticationError(f"oidc: verify token: {error}") from None

    def _checked(self, payload: bytes) -> dict[str, Any]:
        check_token(read_token(payload), self._expected, self._clock())
        return claims_of(payload)

    async def verified_claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token. See distributed_claims.Verifier."""
        found = self.claims(token)
        return found if isinstance(found, dict) else await found


class IssuerAuthenticator:
    """Authenticator of one issuer's tokens by a validated configuration. The constructor needs a running event loop.

    `fetcher` fetches the issuer's documents; expressions are evaluated in worker threads.
    """

    def __init__(
        self, configuration: JWTAuthenticator, algorithms: Sequence[str], fetcher: Fetcher, metrics: IssuerMetrics
    ) -> None:
        issuer = configuration.issuer
        self.issuer: Final = issuer.url
        self._fetcher = fetcher
        self._metrics = metrics
        self._expected = Expectations(issuer.url, tuple(issuer.audiences or ()), tuple(algorithms))
        self._tokens = ProviderTokens(self._expected, issuer.discovery_url or "", fetcher.fetch, metrics)
        self._mapper = ClaimMapper(configuration)
        claim = configuration.claim_mappings.groups.claim
        self._others: dict[str, ProviderTokens] = {}
        self._distributed = DistributedClaims(claim, fetcher.fetch, self._verifier) if claim else None

    async def close(self) -> None:
        """Stop all requests to issuers."""
        await asyncio.gather(self._tokens.close(), *(each.close() for each in self._others.values()))
        self._fetcher.close()

    async def discovered(self) -> None:
        """Return once tokens can be verified."""
        await self._tokens.discovered()

    @property
    def fault(self) -> str:
        """Reason why tokens cannot be verified yet, "" once they can."""
        fault = self._tokens.fault
        return f"oidc: authenticator for issuer {quote(self.issuer)} is not healthy: {fault}" if fault else ""

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """Authenticate a token. See TokenAuthenticator; the caller has checked the audiences."""
        if untrusted_issuer(token) != self.issuer:
            return None
        began = times.monotonic()
        try:
            claims = self._tokens.claims(token)
            if isinstance(claims, dict) and not self._mapper.has_expressions and not self._has_to_ask(claims):
                return self._identity(self._mapper.user(claims), audiences, began)
        except AuthenticationError:
            self._metrics.observe(times.monotonic() - began, is_good=False)
            raise
        return self._wait(claims, audiences, began)

    def _has_to_ask(self, claims: dict[str, Any]) -> bool:
        return self._distributed is not None and self._distributed.has_to_ask(claims)

    async def _wait(
        self, pending: dict[str, Any] | Awaitable[dict[str, Any]], audiences: tuple[str, ...], began: float
    ) -> TokenIdentity:
        try:
            claims = pending if isinstance(pending, dict) else await pending
            if self._distributed is not None and self._distributed.has_to_ask(claims):
                await self._distributed.expand(claims)
            return self._identity(await self._user(claims), audiences, began)
        except AuthenticationError:
            self._metrics.observe(times.monotonic() - began, is_good=False)
            raise

    async def _user(self, claims: dict[str, Any]) -> UserInfo:
        """Return the user of claims, evaluated in a worker thread. Raises AuthenticationError."""
        whose = f"{self.issuer}#{claims.get('sub')}"[:_LONGEST_NAME]  # the user is not known yet
        return await current().for_user(whose).offload(self._mapper.user, claims)

    def _identity(self, user: UserInfo, audiences: tuple[str, ...], began: float) -> TokenIdentity:
        self._metrics.observe(times.monotonic() - began, is_good=True)
        return TokenIdentity(authenticated(user), audiences)

    def _verifier(self, issuer: str) -> Verifier | None:
        """Return the verifier of another issuer, None until it is ready. See DistributedClaims."""
        found = self._others.get(issuer)
        if found is None:
            expected = Expectations(issuer, self._expected.audiences, self._expected.algorithms)
            found = ProviderTokens(expected, "", self._fetcher.fetch, JWTMetrics(Registry(), "").for_issuer(issuer))
            self._others[issuer] = found
        return found if found.is_ready else None


class JWTAuthenticators:
    """Authenticators of all issuers of one configuration; the issuer in a token selects the authenticator.

    The constructor needs a running event loop. Raises FetchError for unusable CAs.
    """

    def __init__(
        self,
        configuration: AuthenticationConfiguration,
        algorithms: Sequence[str],
        api_audiences: tuple[str, ...],
        metrics: JWTMetrics,
        egress: Egress = USUAL,
    ) -> None:
        issuers = configuration.jwt or ()
        fetchers = [
            Fetcher(each.issuer.certificate_authority, leave=_way_of(each.issuer.egress_selector_type, egress))
            for each in issuers
        ]
        self._api_audiences = api_audiences
        self._by_issuer: Final = {
            each.issuer.url: IssuerAuthenticator(each, algorithms, fetcher, metrics.for_issuer(each.issuer.url))
            for each, fetcher in zip(issuers, fetchers, strict=True)
        }

    async def close(self) -> None:
        """Stop all requests to issuers."""
        await asyncio.gather(*(each.close() for each in self._by_issuer.values()))

    @property
    def issuers(self) -> frozenset[str]:
        """The URLs of all issuers."""
        return frozenset(self._by_issuer)

    async def discovered(self) -> None:
        """Return once the tokens of all issuers can be verified."""
        await asyncio.gather(*(each.discovered() for each in self._by_issuer.values()))

    @property
    def faults(self) -> tuple[str, ...]:
        """Reasons why tokens of some issuers cannot be verified yet."""
        return tuple(each.fault for each in self._by_issuer.values() if each.fault)

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """Authenticate a token. See TokenAuthenticator. A user's token is valid for the API's audiences, not for its
        own.
        """
        if not self._by_issuer:
            return None
        common = tuple(each for each in self._api_audiences if each in audiences) if audiences else ()
        if audiences and not common:
            return None
        judge = self._by_issuer.get(untrusted_issuer(token))
        return None if judge is None else judge.authenticate_token(token, common)


def _way_of(name: str, egress: Egress) -> Dial | None:
    """Return the dialer for requests to an issuer; None for the usual one. Raises FetchError if it is not
    configured.
    """
    if not name:
        return None
    if not egress.is_given:
        raise FetchError(f"oidc: egress lookup required with egress selector type {quote(name)}")
    found = egress.cluster if name == "cluster" else egress.control_plane
    if found is None:
        raise FetchError(f"oidc: egress lookup for {quote(name)} is not configured")
    return found
