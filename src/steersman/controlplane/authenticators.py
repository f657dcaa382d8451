"""Authenticators of a control plane: client certificates, static tokens, service account tokens, OIDC, webhooks."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from steersman.api.core.v1 import Secret
from steersman.authentication.anonymous import AnonymousAuthenticator
from steersman.authentication.authorities import Authorities
from steersman.authentication.bearer_token import BearerTokenAuthenticator
from steersman.authentication.bootstrap_tokens import BootstrapSecret, BootstrapTokens
from steersman.authentication.client_certificate import ClientCertificateAuthenticator
from steersman.authentication.interface import Authenticator, TokenAuthenticator
from steersman.authentication.issued_tokens import IssuedTokens
from steersman.authentication.legacy_tokens import LegacyTokens, TokenAccount, TokenSecret
from steersman.authentication.request_header import HeaderNames, RequestHeaderAuthenticator
from steersman.authentication.service_account_claims import BoundObjects, Find, LookUp, Named
from steersman.authentication.service_account_metrics import ServiceAccountMetrics
from steersman.authentication.service_account_tokens import ServiceAccountTokens
from steersman.authentication.token_cache import CachedTokenAuthenticator
from steersman.authentication.token_file import StaticTokens, TokenFileError
from steersman.authentication.union import UnionAuthenticator, UnionTokenAuthenticator
from steersman.authentication.user import SYSTEM_MASTERS, UserInfo
from steersman.controlplane.flag_files import defers_verification
from steersman.controlplane.options import Options, OptionsError
from steersman.controlplane.stores import Stores
from steersman.controlplane.token_keys import OwnTokenKeys, TokenKeys
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.metrics import Histogram, Registry
from steersman.net.client.egress import Egress
from steersman.rest.objects import Reading
from steersman.server.certificates import CertificateFiles
from steersman.store.storage_errors import StorageNotReady

if TYPE_CHECKING:
    from steersman.api.apiserver.v1 import AnonymousAuthConfig
    from steersman.controlplane.jwt_authentication import JWTAuthentication
    from steersman.faults.fault_set import FaultSet
    from steersman.webhooks.client import WebhookClient

logger = logging.getLogger(__name__)

T = TypeVar("T")


async def token_keys(
    options: Options,
    registry: Registry,
    running: AsyncExitStack,
    before: Callable[[], Awaitable[None]] | None = None,
) -> TokenKeys:
    """Return the server's own token keys, which are read after `before`, or those of the external signer.

    `running` stops them at the end. Raises OptionsError.
    """
    if not options.service_account_signing_endpoint:
        own = OwnTokenKeys(options, before)
        running.push_async_callback(own.stop)
        return own
    from steersman.controlplane.external_tokens import ExternalTokens  # which most servers never need

    external = ExternalTokens(options, registry)
    running.push_async_callback(external.stop)
    await external.start()
    return external


_NAMED: Final[Reading[Named]] = Reading(lambda obj: obj, "metadata.name", "metadata.uid", "metadata.deletionTimestamp")


_ACCOUNT: Final[Reading[TokenAccount]] = Reading(
    lambda obj: obj, "metadata.name", "metadata.uid", "metadata.deletionTimestamp", "secrets"
)


def _token_account(stores: Stores) -> Callable[[str, str], TokenAccount | None]:
    return lambda namespace, name: stores.objects("", "serviceaccounts").read_cached(namespace, name, _ACCOUNT)


def _find(stores: Stores, plural: str) -> Find:
    return lambda namespace, name: stores.objects("", plural).read_cached(namespace, name, _NAMED)


def _looking_up(stores: Stores) -> LookUp | None:
    """Return a function that reads a token's bound object from storage; None if no other server writes to it."""
    if stores.storage_of(GroupResource("", "serviceaccounts")).knows_newest:
        return None
    return lambda plural, namespace, name: stores.objects("", plural).refresh(namespace, name)


def _read_token_secret(secret: Secret) -> TokenSecret:
    metadata = secret.metadata
    return TokenSecret(metadata.deletion_timestamp is not None, secret.data.get("token", b""), metadata.labels)


_TOKEN_SECRET: Final = Reading(_read_token_secret, "metadata.deletionTimestamp", "metadata.labels", "data")


def _known_secret(stores: Stores, namespace: str, name: str, reading: Reading[T]) -> T | None:
    """Return a reading of a secret; None if there is none.

    Returns None also while secrets cannot be listed because one of them cannot be decrypted: clients need not retry
    with a token that cannot be verified.
    """
    try:
        return stores.objects("", "secrets").read_cached(namespace, name, reading)
    except StorageNotReady as error:
        logger.error("looking up the secret %s/%s of a token failed: %s", namespace, name, error.message)
        return None


def _token_secret(stores: Stores) -> Callable[[str, str], TokenSecret | None]:
    return lambda namespace, name: _known_secret(stores, namespace, name, _TOKEN_SECRET)


def _read_bootstrap_secret(secret: Secret) -> BootstrapSecret:
    return BootstrapSecret(secret.metadata.deletion_timestamp is not None, secret.type, secret.data)


_BOOTSTRAP_SECRET: Final = Reading(_read_bootstrap_secret, "metadata.deletionTimestamp", "type", "data")


def _bootstrap_secret(stores: Stores) -> Callable[[str], BootstrapSecret | None]:
    return lambda name: _known_secret(stores, "kube-system", name, _BOOTSTRAP_SECRET)


_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR
_LIFETIMES: Final = (
    0.0,
    _HOUR / 2,
    _HOUR,
    2 * _HOUR,
    6 * _HOUR,
    12 * _HOUR,
    _DAY,
    2 * _DAY,
    4 * _DAY,
    7 * _DAY,
    30 * _DAY,
    90 * _DAY,
    180 * _DAY,
    360 * _DAY,
)

LOOPBACK: Final = UserInfo("system:apiserver", groups=(SYSTEM_MASTERS,))
"""The user as which this server sends requests to itself."""


def _jwt_authentication(
    options: Options, registry: Registry, running: AsyncExitStack, egress: Egress
) -> JWTAuthentication | None:
    """Return the authenticator of JSON Web Tokens, None without a configuration; `running` stops it. Raises
    OptionsError.
    """
    if not (options.authentication_config or options.has_oidc_flags):
        return None
    from steersman.controlplane.jwt_authentication import JWTAuthentication  # which most servers never need

    jwtauthentication = JWTAuthentication(options, registry, egress)
    running.push_async_callback(jwtauthentication.stop)
    jwtauthentication.start()
    return jwtauthentication


class ConfiguredTokens(NamedTuple):
    """Token authenticators configured by files or flags, None for each that is not configured."""

    static: TokenAuthenticator | None
    jwt: JWTAuthentication | None
    webhook: TokenAuthenticator | None


def configured_tokens(
    options: Options, registry: Registry, running: AsyncExitStack, egress: Egress, faults: FaultSet | None = None
) -> ConfiguredTokens:
    """Create the configured token authenticators; `running` closes their connections, `faults` hit calls of the
    webhook. Raises OptionsError.
    """
    webhook = options.authentication_token_webhook_config_file
    return ConfiguredTokens(
        _static_tokens(options),
        _jwt_authentication(options, registry, running, egress),
        _webhook(options, running, egress, faults) if webhook else None,
    )


def token_authenticator(
    options: Options,
    keys: TokenKeys,
    stores: Stores,
    issued: IssuedTokens,
    used: Callable[[str, str], None],
    configured: ConfiguredTokens,
    registry: Registry,
) -> TokenAuthenticator:
    """Return the authenticator of bearer tokens; `used` is called with the secret of a legacy token in use.

    A successful authentication is cached for ten seconds.
    """
    authenticators: list[TokenAuthenticator] = []
    if configured.static is not None:
        authenticators.append(configured.static)
    bound = BoundObjects(
        service_account=_find(stores, "serviceaccounts"),
        pod=_find(stores, "pods"),
        secret=lambda namespace, name: _known_secret(stores, namespace, name, _NAMED),
        node=_find(stores, "nodes"),
        look_up=_looking_up(stores),
    )
    metrics = ServiceAccountMetrics(registry)
    in_secrets = LegacyTokens(
        keys.verifying,
        options.audiences,
        _token_secret(stores),
        _token_account(stores),
        used,
        metrics,
        looks_up=options.service_account_lookup,
        look_up=bound.look_up,
    )
    authenticators.append(in_secrets)
    authenticators.append(
        ServiceAccountTokens(keys.verifying, options.service_account_issuer, options.audiences, bound, metrics)
    )
    if options.enable_bootstrap_token_auth:
        authenticators.append(BootstrapTokens(options.audiences, _bootstrap_secret(stores)))
    if configured.jwt is not None:
        authenticators.append(configured.jwt)
    if configured.webhook is not None:
        authenticators.append(configured.webhook)
    return UnionTokenAuthenticator([issued, CachedTokenAuthenticator(UnionTokenAuthenticator(authenticators))])


def _static_tokens(options: Options) -> StaticTokens | None:
    """Return the tokens of --token-auth-file, None without the flag. Raises OptionsError."""
    if not options.token_auth_file:
        return None
    try:
        return StaticTokens.load(options.token_auth_file, options.audiences)
    except TokenFileError as error:
        raise OptionsError(f"--token-auth-file: {error}") from None


def _webhook(options: Options, running: AsyncExitStack, egress: Egress, faults: FaultSet | None) -> TokenAuthenticator:
    """Return the webhook's token authenticator. Raises OptionsError."""
    from steersman.authentication import webhook_tokens  # which most servers never need
    from steersman.authentication.token_review import ReviewedTokens
    from steersman.webhooks.client import WebhookClient
    from steersman.webhooks.kubeconfig import KubeconfigError, load_kubeconfig

    version = options.authentication_token_webhook_version
    if version not in webhook_tokens.VERSIONS:
        raise OptionsError(
            f'unsupported authentication webhook version "{version}", supported versions are "v1", "v1beta1"'
        )
    try:
        login = load_kubeconfig(Path(options.authentication_token_webhook_config_file))
    except KubeconfigError as error:
        raise OptionsError(f"--authentication-token-webhook-config-file: {error}") from None
    endpoint = replace(login, leave=egress.control_plane)
    client = WebhookClient(endpoint, webhook_tokens.BACKOFF, user_agent=webhook_tokens.USER_AGENT)
    running.callback(client.close)
    asked = ReviewedTokens(webhook_tokens.reviews(_post(client, faults), version), options.audiences)
    seconds = options.authentication_token_webhook_cache_ttl
    return CachedTokenAuthenticator(asked, seconds=seconds, unknown_seconds=seconds) if seconds else asked


def _post(client: WebhookClient, faults: FaultSet | None) -> Callable[[bytes], Awaitable[bytes]]:
    """Return the function that posts reviews of tokens to the webhook, through the faults that hit it."""
    if faults is None:
        return client.post
    from steersman.faults.fault import DEFAULT_WEBHOOK, Call
    from steersman.faults.faulty_sender import faulty_way

    call = Call("authentication_webhooks", (DEFAULT_WEBHOOK,))
    return lambda body: client.post(body, through=faulty_way(faults, call))


def proxy_headers(options: Options) -> HeaderNames | None:
    """Return the headers in which trusted proxies name the request user; None without trusted proxies."""
    if not options.requestheader_client_ca_file:
        return None
    return HeaderNames.from_names(
        options.requestheader_username_headers,
        options.requestheader_uid_headers,
        options.requestheader_group_headers,
        options.requestheader_extra_headers_prefix,
    )


def authenticator(
    options: Options,
    tokens: TokenAuthenticator,
    files: CertificateFiles,
    registry: Registry,
    anonymous: AnonymousAuthConfig | None = None,
) -> Authenticator:
    """Return the authenticator of requests. `anonymous`, if given, replaces the flag.

    If flags name authorities, TLS accepts any certificate and this authenticator verifies it. Client certificates are
    verified against `--client-ca-file` only, if it is set, except for the administrator's certificate of the data
    folder.
    """
    authenticators: list[Authenticator] = []
    authorities = None
    if defers_verification(options):
        own, given = str(files.ca), options.client_ca_file
        authorities = Authorities([given], [str(files.admin)]) if given else Authorities([own])
    headers = proxy_headers(options)
    if headers is not None:
        of_proxies = Authorities((options.requestheader_client_ca_file,))
        authenticators.append(RequestHeaderAuthenticator(headers, of_proxies, options.requestheader_allowed_names))
    expiration = Histogram(
        "apiserver_client_certificate_expiration_seconds",
        "[ALPHA] Distribution of the remaining lifetime on the certificate used to authenticate a request.",
        _LIFETIMES,
    )
    registry.add(expiration)
    authenticators += [
        ClientCertificateAuthenticator(authorities=authorities, remaining=expiration.observe),
        BearerTokenAuthenticator(tokens, options.audiences),
    ]
    return UnionAuthenticator(authenticators, _anonymous(options, anonymous))


def _anonymous(options: Options, configured: AnonymousAuthConfig | None) -> Authenticator | None:
    if configured is None:
        return AnonymousAuthenticator() if options.lets_anonymous_in else None
    return AnonymousAuthenticator([each.path for each in configured.conditions]) if configured.enabled else None
