"""Signing keys of service account tokens, and the documents by which others verify them."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from steersman.authentication.service_account_keys import ServiceAccountKeys, check_issuer, default_jwks_uri
from steersman.authentication.service_account_tokens import Verifiers, sign
from steersman.controlplane.flag_files import service_account_keys
from steersman.controlplane.options import Options
from steersman.registry.services import EXTENDED_SECONDS
from steersman.server.basic_paths import install_openid
from steersman.server.server import Server
from steersman.work.first_use import import_offloaded

logger = logging.getLogger(__name__)


class TokenKeys(ABC):
    """Signer of service account tokens, with its OpenID documents."""

    max_extended_token_expiration = EXTENDED_SECONDS
    """Lifetime of pods' tokens in seconds."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.max_token_expiration = options.service_account_max_token_expiration
        """Longest lifetime of a token in seconds, 0 without a limit."""

    @abstractmethod
    async def wait_until_available(self) -> None:
        """Return once the keys are available. Raises OptionsError and OSError."""

    @abstractmethod
    async def stop(self) -> None:
        """Stop background work."""

    @abstractmethod
    def sign(self, claims: dict[str, Any]) -> str | Awaitable[str]:
        """Return a token with these claims. Raises KeyFileError and StatusError."""

    @property
    @abstractmethod
    def verifying(self) -> Callable[[], ServiceAccountKeys] | Verifiers:
        """The keys for verifying tokens (authentication.service_account_tokens)."""

    def install_openid(self, server: Server) -> None:
        """Serve the documents for verifying tokens; as upstream, not if the issuer is no https URL."""
        try:
            check_issuer(self._options.service_account_issuer[0])
        except ValueError as error:
            logger.warning("not serving the documents of OpenID discovery: %s", error)
            return
        install_openid(server, partial(self._configuration, server), self._key_set, self._max_age)

    def _configuration(self, server: Server) -> bytes:
        jwks_uri = self._options.service_account_jwks_uri or default_jwks_uri(str(server.external_address))
        return self._configuration_of(jwks_uri)

    @abstractmethod
    def _key_set(self) -> bytes: ...

    @abstractmethod
    def _configuration_of(self, jwks_uri: str) -> bytes: ...

    def _max_age(self) -> int:
        """Return the seconds for which the documents may be cached."""
        return 3600


class OwnTokenKeys(TokenKeys):
    """Keys of this server, which a thread reads or makes during the start."""

    def __init__(self, options: Options, before: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__(options)
        self._making = asyncio.create_task(self._make(before))

    async def _make(self, before: Callable[[], Awaitable[None]] | None) -> ServiceAccountKeys:
        if before is not None:
            await before()
        return await asyncio.to_thread(service_account_keys, self._options)

    async def wait_until_available(self) -> None:
        await self._making

    async def stop(self) -> None:
        """Return once the thread has ended, with or without success."""
        await asyncio.gather(self._making, return_exceptions=True)

    def keys(self) -> ServiceAccountKeys:
        """Return the keys; they must have been made."""
        return self._making.result()

    @property
    def verifying(self) -> Callable[[], ServiceAccountKeys]:
        return self.keys

    async def sign(self, claims: dict[str, Any]) -> str:
        await import_offloaded("joserfc.jws")  # some 50 ms with its cryptography, and many servers never sign
        return self.sign_at_once(claims)

    def sign_at_once(self, claims: dict[str, Any]) -> str:
        """Return a token as `sign` does, for controllers, which do not wait for it."""
        return sign(self.keys(), claims)

    def _key_set(self) -> bytes:
        return self.keys().jwks

    def _configuration_of(self, jwks_uri: str) -> bytes:
        return self.keys().openid_configuration(self._options.service_account_issuer[0], jwks_uri)
