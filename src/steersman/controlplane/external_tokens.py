"""Service account tokens signed by the external signer of `--service-account-signing-endpoint`."""

from __future__ import annotations

import logging
from typing import Any, Final

import msgspec

from steersman.authentication.external_signer import ExternalSigner, SignerError, SignerMetrics
from steersman.authentication.service_account_keys import key_set, openid_configuration
from steersman.authentication.service_account_tokens import Verifiers
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.token_keys import TokenKeys
from steersman.machinery.errors.status import internal
from steersman.machinery.metrics import Registry
from steersman.machinery.values.durations import format_duration
from steersman.registry.core.token_requests import MIN_SECONDS, WARN_ONLY_SECONDS
from steersman.registry.services import EXTENDED_SECONDS
from steersman.work.patterns import late_pattern

logger = logging.getLogger(__name__)

_ABSTRACT: Final = late_pattern(r"@([a-zA-Z0-9_-]+\.)*[a-zA-Z0-9_-]+")
_encode: Final = msgspec.json.Encoder().encode


class ExternalTokens(TokenKeys):
    """Token keys of an external signer. The constructor needs a running event loop.

    Raises OptionsError for flags that contradict each other.
    """

    def __init__(self, options: Options, registry: Registry) -> None:
        endpoint = options.service_account_signing_endpoint
        if options.service_account_signing_key_file or options.service_account_key_file:
            raise OptionsError(
                "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with "
                "`--service-account-signing-endpoint` (They are mutually exclusive)"
            )
        if endpoint.startswith("@") and not _ABSTRACT.fullmatch(endpoint):
            raise OptionsError(
                f'invalid value "{endpoint}" passed for `--service-account-signing-endpoint`, when prefixed with @ '
                "must be a valid abstract socket name"
            )
        super().__init__(options)
        self.signer = ExternalSigner(endpoint, SignerMetrics(registry), timeout=options.request_timeout)

    async def start(self) -> None:
        """Ask the signer for its keys and the longest lifetime of its tokens. Raises OptionsError."""
        try:
            await self.signer.start()
        except SignerError as error:
            raise OptionsError(f"while setting up external-jwt-signer: {error}") from None
        longest, given = self.signer.max_token_expiration, self._options.service_account_max_token_expiration
        if longest < MIN_SECONDS:
            raise OptionsError(
                f"max token life supported by external-jwt-signer ({longest}s) is less than acceptable "
                f"(min {MIN_SECONDS}s)"
            )
        if given > longest:
            raise OptionsError(
                "service-account-max-token-expiration cannot be set longer than the token expiration supported by "
                f"service-account-signing-endpoint: {_duration(given)} > {_duration(longest)}"
            )
        self.max_token_expiration = given or longest
        self.max_extended_token_expiration = min(longest, EXTENDED_SECONDS)
        if self._options.service_account_extend_token_expiration:
            _warn(self.max_token_expiration)

    async def wait_until_available(self) -> None:
        """Return at once: the keys are known from the start."""

    async def stop(self) -> None:
        """Close the connection to the signer."""
        await self.signer.stop()

    async def sign(self, claims: dict[str, Any]) -> str:
        """Return the claims as a signed token. Raises StatusError 500."""
        try:
            return await self.signer.sign(_encode(claims))
        except SignerError as error:
            raise internal(f"failed to generate token: {error}") from None

    @property
    def verifying(self) -> Verifiers:
        return self.signer

    def _key_set(self) -> bytes:
        return key_set(self.signer.published)

    def _configuration_of(self, jwks_uri: str) -> bytes:
        return openid_configuration(self.signer.published, self._options.service_account_issuer[0], jwks_uri)

    def _max_age(self) -> int:
        return self.signer.max_age()


def _warn(seconds: int) -> None:
    """Warn of a signer whose tokens live shorter than tokens of pods should."""
    if seconds < WARN_ONLY_SECONDS:
        logger.warning(
            "service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, "
            "token lifetime supported by external-jwt-signer must be longer than %d seconds (currently %s)",
            WARN_ONLY_SECONDS,
            _duration(seconds),
        )
    if seconds < EXTENDED_SECONDS:
        logger.warning(
            "service-account-extend-token-expiration is true, tokens validity will be caped at the smaller of %d "
            "seconds and maximum token lifetime supported by external-jwt-signer (%s)",
            EXTENDED_SECONDS,
            _duration(seconds),
        )


def _duration(seconds: int) -> str:
    return format_duration(seconds * 1_000_000_000)
