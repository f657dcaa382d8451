"""Authentication by JSON Web Tokens, configured by the file of `--authentication-config` or the flags `--oidc-*`.

The file is checked every second. A changed configuration takes effect once all its issuers have been discovered; until
then the previous one stays (pkg/kubeapiserver `options/authentication.go`, `authenticator/config.go`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from steersman.api.apiserver.v1 import (
    AnonymousAuthConfig,
    AuthenticationConfiguration,
    ClaimMappings,
    ClaimValidationRule,
    Issuer,
    JWTAuthenticator,
    PrefixedClaimOrExpression,
)
from steersman.authentication.aggregate import aggregate
from steersman.authentication.interface import TokenIdentity
from steersman.authentication.jwt.authenticator import JWTAuthenticators
from steersman.authentication.jwt.configuration import read_configuration
from steersman.authentication.jwt.fetching import FetchError
from steersman.authentication.jwt.id_token import ALGORITHMS
from steersman.authentication.jwt.metrics import JWTMetrics
from steersman.authentication.jwt.validation import configuration_errors
from steersman.controlplane.ending import Ending
from steersman.controlplane.followed_configuration import FollowedConfiguration, Unusable
from steersman.controlplane.identity_lease import server_id
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.reload_metrics import ReloadMetrics
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, quote
from steersman.machinery.metrics import Registry
from steersman.machinery.private_files import read_bounded
from steersman.net.client.egress import Egress
from steersman.net.log_levels import NOTICE
from steersman.work.offloading import offload_if

logger = logging.getLogger(__name__)

LOOK_EVERY: Final = 1.0
"""Seconds between checks of the file."""
READY_WITHIN: Final = 60.0
"""Seconds allowed for the discovery of the issuers of a changed file."""
KEPT: Final = 60.0
"""Seconds for which the authenticators of a replaced file stay open, for tokens being checked."""


class JWTAuthentication:
    """The current issuers. The constructor needs a running event loop; `start` follows the file.

    Raises OptionsError for a configuration that cannot be used.
    """

    def __init__(self, options: Options, registry: Registry, egress: Egress) -> None:
        self._egress = egress
        self._path = Path(options.authentication_config) if options.authentication_config else None
        self._audiences = options.audiences
        self._service_account_issuers = options.service_account_issuer
        self._algorithms = tuple(ALGORITHMS) if self._path is not None else options.oidc_signing_algs
        server = server_id(socket.gethostname())
        self._metrics = JWTMetrics(registry, server)
        self._data = b""
        configuration = self._first(options)
        self._anonymous = configuration.anonymous
        if configuration.anonymous is not None and options.anonymous_auth_is_given:
            raise OptionsError(
                "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in "
                "authentication configuration file"
            )
        if errors := list(configuration_errors(configuration, self._service_account_issuers)):
            raise OptionsError(f"invalid authentication configuration: {field.aggregate(errors)}")
        _check_algorithms(self._algorithms)
        try:
            self._current = self._create_authenticators(configuration)
        except FetchError as error:
            raise OptionsError(f"invalid authentication configuration: {error}") from None
        self._following: FollowedConfiguration | None = None
        if self._path is not None:
            self._following = FollowedConfiguration(
                "authentication configuration",
                self._path,
                self._data,
                read=_read,
                take=self._apply,
                metrics=ReloadMetrics(registry, "authentication", server, self._data),
                interval=LOOK_EVERY,
            )
        self._ending = Ending()

    def _first(self, options: Options) -> AuthenticationConfiguration:
        if self._path is None:
            return configuration_of_flags(options)
        if options.has_oidc_flags:
            raise OptionsError("authentication-config file and oidc-* flags are mutually exclusive")
        try:
            self._data = read_bounded(self._path)
            return read_configuration(self._data)
        except (OSError, DecodeError) as error:
            raise OptionsError(
                f"failed to load authentication configuration from file {quote(str(self._path))}: {error}"
            ) from None

    def _create_authenticators(self, configuration: AuthenticationConfiguration) -> JWTAuthenticators:
        return JWTAuthenticators(configuration, self._algorithms, self._audiences, self._metrics, self._egress)

    @property
    def anonymous(self) -> AnonymousAuthConfig | None:
        """The first file's settings for anonymous requests; a later file cannot change them."""
        return self._anonymous

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """Authenticate a token. See TokenAuthenticator."""
        return self._current.authenticate_token(token, audiences)

    def start(self) -> None:
        """Follow the file, if there is one."""
        if self._following is not None:
            self._following.start()

    async def stop(self) -> None:
        """Stop following the file and close the connections to issuers."""
        if self._following is not None:
            await self._following.stop()
        await self._ending.stop()
        await self._current.close()

    async def _apply(self, data: bytes) -> bool:
        """Apply a changed file. Raises Unusable."""
        try:
            configuration = await offload_if(True, read_configuration, data)
            errors = await offload_if(True, self._errors, configuration)
        except DecodeError as error:
            raise Unusable(f"failed to load authentication config: {error}") from None
        if errors:
            raise Unusable(f"failed to validate authentication config: {field.aggregate(errors)}")
        await self._put_in_place(configuration)
        logger.log(NOTICE, "reloaded authentication config")
        return True

    def _errors(self, configuration: AuthenticationConfiguration) -> list[FieldError]:
        errors = list(configuration_errors(configuration, self._service_account_issuers))
        if configuration.anonymous != self._anonymous:
            errors.append(field.forbidden(field.Path("anonymous"), "changed from initial configuration file"))
        return errors

    async def _put_in_place(self, configuration: AuthenticationConfiguration) -> None:
        """Put a configuration in place once all its issuers are discovered. Raises Unusable."""
        try:
            made = self._create_authenticators(configuration)
        except FetchError as error:
            raise Unusable(f"failed to update authentication config: {error}", transient=True) from None
        try:
            async with asyncio.timeout(READY_WITHIN):
                await made.discovered()
        except TimeoutError:
            await made.close()
            raise Unusable(
                f"failed to update authentication config: {aggregate(made.faults)}", transient=True
            ) from None
        except asyncio.CancelledError:
            await made.close()
            raise
        before, self._current = self._current, made
        self._ending.later(KEPT, partial(self._end, before))

    async def _end(self, before: JWTAuthenticators) -> None:
        """Close a replaced configuration and remove the metrics of its issuers."""
        await before.close()
        for issuer in before.issuers - self._current.issuers:
            self._metrics.forget(issuer)


def configuration_of_flags(options: Options) -> AuthenticationConfiguration:
    """Return the configuration equivalent to the `--oidc-*` flags. Raises OptionsError."""
    if not options.oidc_issuer_url or not options.oidc_client_id:
        raise OptionsError(
            "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
        )
    prefix = options.oidc_username_prefix
    if not prefix and options.oidc_username_claim != "email":
        prefix = f"{options.oidc_issuer_url}#"
    groups = PrefixedClaimOrExpression()
    if options.oidc_groups_claim:
        groups = PrefixedClaimOrExpression(claim=options.oidc_groups_claim, prefix=options.oidc_groups_prefix)
    authority = ""
    if options.oidc_ca_file:
        try:
            authority = read_bounded(Path(options.oidc_ca_file)).decode("utf-8", "replace")
        except OSError as error:
            raise OptionsError(f"--oidc-ca-file: {options.oidc_ca_file}: {error.strerror or error}") from None
    authenticator = JWTAuthenticator(
        issuer=Issuer(url=options.oidc_issuer_url, audiences=[options.oidc_client_id], certificate_authority=authority),
        claim_mappings=ClaimMappings(
            username=PrefixedClaimOrExpression(
                claim=options.oidc_username_claim, prefix="" if prefix == "-" else prefix
            ),
            groups=groups,
        ),
        claim_validation_rules=[
            ClaimValidationRule(claim=claim, required_value=value)
            for claim, value in options.oidc_required_claim.items()
        ],
    )
    return AuthenticationConfiguration(jwt=[authenticator])


def _check_algorithms(algorithms: Sequence[str]) -> None:
    for each in algorithms:
        if each not in ALGORITHMS:
            raise OptionsError(f"oidc: unsupported signing alg: {quote(each)}")


def _read(path: Path) -> bytes:
    try:
        return read_bounded(path)
    except OSError as error:
        raise Unusable(f"failed to read authentication config file: {error}") from None
