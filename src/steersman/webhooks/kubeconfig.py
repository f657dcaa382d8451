"""Kubeconfig files for connections of this server to other servers such as webhooks; parsed as client-go's clientcmd
does.
"""

from __future__ import annotations

import base64
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from steersman.machinery.codec.configuration import read_document
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.field import quote
from steersman.machinery.go.os_errors import reason
from steersman.machinery.go.strings import trim_space
from steersman.machinery.go.urls import redacted_url
from steersman.machinery.private_files import read_bounded, temporary_file, warn_of_access
from steersman.net.client.egress import Dial
from steersman.net.client.proxy_environment import Proxy
from steersman.net.client.tls import HTTP1, HTTP2, ClientTLS, Protocols, client_context
from steersman.net.client.transport import Address, Locate, Sender
from steersman.webhooks.kubeconfig_types import AuthInfo, Cluster, Config, Context, ExecPlugin
from steersman.work.followed_files import FollowedFiles

logger = logging.getLogger(__name__)

NO_CONFIGURATION: Final = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)
_HTTPS: Final = ":443"
T = TypeVar("T")


_KINDS: Final = {("v1", "Config"): Config}
_NOT_SUPPORTED: Final[dict[type, tuple[str, ...]]] = {
    Cluster: ("proxy_url",),
    AuthInfo: ("exec", "auth_provider", "as_", "as_uid", "as_groups"),
}


class _Kubeconfig(Struct, frozen=True):
    """A kubeconfig with its items by name."""

    clusters: Mapping[str, Cluster]
    users: Mapping[str, AuthInfo]
    contexts: Mapping[str, Context]
    current_context: str


class KubeconfigError(ValueError):
    """A kubeconfig that cannot be used. The text is upstream's where upstream has one."""


class Endpoint(Struct, frozen=True):
    """Address of another server, and this server's credentials for it."""

    url: str
    """URL without user and password."""
    address: Address
    target: str
    """Path, and the query if there is one."""
    tls: ClientTLS
    server_name: str
    """Name that the server's certificate must have."""
    credentials: Callable[[], str]
    """Returns the Authorization header, empty for none. Raises OSError if its file cannot be read."""
    locate: Locate | None = None
    """Resolves the address for each new connection, if it is not `address`."""
    protocols: Protocols = HTTP1
    sender: Sender | None = None
    """Sends the requests, in place of a new transport."""
    leave: Dial | None = None
    """Dials connections, if they do not go out directly."""
    namespace: str = ""
    """Namespace of the context, "" if it has none."""
    plugin: ExecPlugin | None = None
    """Command that prints the credentials, if `credentials` returns none."""
    impersonation: Sequence[tuple[str, str]] = ()
    """Header fields that name another user, for whom requests are made."""
    proxy: Proxy | None = None
    """Proxy of all connections, in place of the environment's."""
    tls_with: Callable[[bytes, bytes], ClientTLS] | None = None
    """Returns the TLS configuration with another client certificate and key in PEM. Raises KubeconfigError."""
    user_shown: str = ""
    """User in the URL for messages, ending in `@`; a password is shown as `***`, as in Go's messages."""

    @property
    def shown(self) -> str:
        """Return the URL for messages, without the query, because a query may contain a key."""
        scheme, _, rest = redacted_url(self.url).partition("://")
        return f"{scheme}://{self.user_shown}{rest}"


class Login(Struct, frozen=True):
    """Credentials of this server for another server, configured apart from that server's address."""

    credentials: Callable[[], str]
    """Returns the Authorization header, see Endpoint."""
    certificate: bytes = b""
    key: bytes = b""


def _no_credentials() -> str:
    return ""


ANONYMOUS: Final = Login(_no_credentials)


def load_logins(path: Path) -> Callable[[str], Login]:
    """Return a function from a host ("name:port") to the credentials for it.

    They are of the user with that name, with "*.DOMAIN" or "*", or of the current context's user (apiserver
    `util/webhook` AuthenticationInfoResolver). Raises KubeconfigError, also for a user that cannot be used.
    """
    config = _read(path)
    logins: dict[str, Login] = {}
    for name, user in config.users.items():
        _check_supported(user, path)
        certificate, key = _certificate_and_key(user, name, path)
        logins[name] = Login(_credentials(user, path), certificate, key)
    context = config.contexts.get(config.current_context, Context())
    usual = logins.get("*") or logins.get(context.user) or ANONYMOUS

    def login(host: str) -> Login:
        found = _by_domain(logins, host)
        if found is None and host.endswith(_HTTPS):
            found = _by_domain(logins, host.removesuffix(_HTTPS))
        return found or usual

    return login


def _by_domain(logins: Mapping[str, Login], host: str) -> Login | None:
    steps = host.split(".")
    names = (host, *(f"*.{'.'.join(steps[number:])}" for number in range(1, len(steps))))
    return next((logins[name] for name in names if name in logins), None)


def _read(path: Path) -> _Kubeconfig:
    """Read and parse a kubeconfig. Raises KubeconfigError."""
    try:
        data = read_bounded(path)
    except OSError as error:
        raise KubeconfigError(f"stat {path}: {reason(error)}") from None
    try:
        config = read_document(data, _KINDS, strict=False, default=("v1", "Config"))
        return _Kubeconfig(
            clusters=_by_name("Cluster", ((each.name, each.cluster) for each in config.clusters)),
            users=_by_name("AuthInfo", ((each.name, each.user) for each in config.users)),
            contexts=_by_name("Context", ((each.name, each.context) for each in config.contexts)),
            current_context=config.current_context,
        )
    except DecodeError as error:
        raise KubeconfigError(f"error loading config file {quote(str(path))}: {error}") from None


def _by_name(kind: str, items: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return items by name. Raises DecodeError for a duplicate name.

    Unlike upstream's, the error text does not contain the items, because they may have tokens.
    """
    found: dict[str, T] = {}
    for name, item in items:
        if name in found:
            what = f"error converting *[]Named{kind} into *map[string]*api.{kind}"
            raise DecodeError(f"{what}: duplicate name {quote(name)} in list")
        found[name] = item
    return found


def _check_supported(part: Cluster | AuthInfo, path: Path) -> None:
    for key in _NOT_SUPPORTED[type(part)]:
        if getattr(part, key):
            shown = "as" if key == "as_" else key.replace("_", "-")
            raise KubeconfigError(f"not supported yet: {shown} in {path}")


class Selected(Struct, frozen=True):
    """Context of a kubeconfig with its cluster and user, each with the file that it comes from."""

    context: Context
    cluster: Cluster
    cluster_path: Path
    user: AuthInfo
    user_path: Path


def load_kubeconfig(path: Path) -> Endpoint:
    """Return the server of the current context with its user's credentials, for connections of this server.

    Raises KubeconfigError, also for what only users have: plugins, impersonation, a proxy; see `user_kubeconfig`.
    """
    found = select([path])
    _check_supported(found.cluster, path)
    _check_supported(found.user, path)
    return endpoint_of(found)


def select(paths: Sequence[Path], context: str = "") -> Selected:
    """Return a context with its cluster and user; of an item in several files the first counts.

    Without `context` the current context of the first file that has one applies. Raises KubeconfigError.
    """
    read = [(path, _read(path)) for path in paths]
    name = context or next((each.current_context for _, each in read if each.current_context), "")
    found = next((each.contexts[name] for _, each in read if name in each.contexts), None)
    if name and found is None:
        raise KubeconfigError(
            f"invalid configuration: [context was not found for specified context: {name}, "
            "cluster has no server defined]"
        )
    found = found or Context()
    cluster = next(
        ((each.clusters[found.cluster], path) for path, each in read if found.cluster in each.clusters), None
    )
    if cluster is None:
        raise KubeconfigError(NO_CONFIGURATION)
    nobody = (AuthInfo(), cluster[1])
    user = next(((each.users[found.user], path) for path, each in read if found.user in each.users), nobody)
    if not cluster[0].server:
        raise KubeconfigError(f"invalid configuration: no server found for cluster {quote(found.cluster)}")
    return Selected(found, *cluster, *user)


def _pem(data: bytes, file: str, shown: str, name: str, kubeconfig: Path) -> bytes:
    """Return PEM data, given directly or in a file, empty if neither is given. Raises KubeconfigError."""
    if data or not file:
        return data
    path = kubeconfig.absolute().parent / file
    try:
        bounded = read_bounded(path)
        if shown == "client-key":
            warn_of_access(path)
    except OSError as error:
        why = f"unable to read {shown} {path} for {name} due to open {path}: {reason(error)}"
        raise KubeconfigError(f"invalid configuration: {why}") from None
    if not bounded:  # an empty file would mean the system's authorities, or no credentials
        raise KubeconfigError(f"invalid configuration: {shown} {path} for {name} is empty")
    return bounded


def _certificate_and_key(user: AuthInfo, name: str, kubeconfig: Path) -> tuple[bytes, bytes]:
    """Return a user's client certificate and key in PEM. Raises KubeconfigError."""
    return (
        _pem(user.client_certificate_data, user.client_certificate, "client-cert", name, kubeconfig),
        _pem(user.client_key_data, user.client_key, "client-key", name, kubeconfig),
    )


def authority_of(found: Selected) -> bytes:
    """Return the CA bundle of a cluster in PEM, empty if it has none. Raises KubeconfigError."""
    cluster = found.cluster
    return _pem(
        cluster.certificate_authority_data,
        cluster.certificate_authority,
        "certificate-authority",
        found.context.cluster,
        found.cluster_path,
    )


def endpoint_of(found: Selected) -> Endpoint:
    """Return the endpoint of a context. Raises KubeconfigError."""
    cluster, user, user_path, context = found.cluster, found.user, found.user_path, found.context
    server, insecure = cluster.server, cluster.insecure_skip_tls_verify
    authority = authority_of(found)
    certificate, key = _certificate_and_key(user, context.user, user_path)
    if certificate and not key:
        raise KubeconfigError(
            f"invalid configuration: client-key-data or client-key must be specified for {context.user} to use the "
            "clientCert authentication method."
        )
    if insecure and authority:
        raise KubeconfigError("specifying a root certificates file with the insecure flag is not allowed")
    if "://" not in server:
        server = f"{'https' if authority or insecure or certificate else 'http'}://{server}"
        if urlsplit(server).path not in ("", "/"):
            shown = redacted_url(server).partition("://")[2]
            raise KubeconfigError(f"host must be a URL or a host:port pair: {quote(shown)}")
    try:
        url = urlsplit(server)
        port = url.port or {"http": 80, "https": 443}[url.scheme]
    except (ValueError, KeyError):
        raise KubeconfigError(f"the server {quote(redacted_url(server))} is no URL of HTTP or HTTPS") from None
    if not url.hostname:
        raise KubeconfigError(f"the server {quote(redacted_url(server))} has no host")
    tls: ClientTLS = client_context
    if url.scheme == "https":
        tls = always_with(client_tls(authority, certificate, key, insecure=insecure, protocols=HTTP2))
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    server_name = cluster.tls_server_name or url.hostname
    address = Address(url.hostname, port, url.scheme == "https")
    credentials, at, _ = url.netloc.rpartition("@")
    name, colon, password = credentials.partition(":")
    return Endpoint(
        server.replace(f"{credentials}@", "", 1) if at else server,
        address,
        target,
        tls,
        server_name,
        _basic(unquote(name), unquote(password)) if at else _credentials(user, user_path),
        protocols=HTTP2,
        namespace=context.namespace,
        user_shown=f"{name}:***@" if colon else f"{name}{at}",
    )


def _basic(name: str, password: str) -> Callable[[], str]:
    """Return the basic authentication of a URL's user, which takes precedence over other credentials, as in Go."""
    value = f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"
    return lambda: value


def always_with(context: ssl.SSLContext) -> ClientTLS:
    """Return a ClientTLS that uses one context, for a server that is always offered the same protocols."""
    return lambda _: context


def client_tls(
    authority: bytes,
    certificate: bytes = b"",
    key: bytes = b"",
    *,
    insecure: bool = False,
    protocols: Protocols = HTTP1,
) -> ssl.SSLContext:
    """Return a TLS context that verifies a server by a CA bundle in PEM, or by the system's CAs.

    Reading the system's CAs takes milliseconds. Raises KubeconfigError.
    """
    context = client_context(protocols, insecure=insecure)
    try:
        if authority:
            context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
        elif not insecure:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if certificate:
            with temporary_file(certificate + b"\n" + key) as name:  # OpenSSL reads both from files only
                context.load_cert_chain(name)
    except ssl.SSLError as error:
        raise KubeconfigError(f"tls: these certificates or keys cannot be used: {error.reason or error}") from None
    return context


def _credentials(user: AuthInfo, kubeconfig: Path) -> Callable[[], str]:
    if user.token_file:
        return _TokenFile(kubeconfig.absolute().parent / user.token_file)
    header = f"Bearer {user.token}" if user.token else ""
    if not header and (user.username or user.password):
        header = f"Basic {base64.b64encode(f'{user.username}:{user.password}'.encode()).decode()}"
    return lambda: header


class _TokenFile:
    """Authorization header with the token in a file, which is read again after it has changed, as client-go does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._header: FollowedFiles[str] | None = None

    def __call__(self) -> str:
        """Return the header. Raises OSError if the file has never had a token."""
        if self._header is None:
            self._header = FollowedFiles([str(self._path)], lambda: f"Bearer {_token_in(self._path)}", self._refused)
        return self._header.current()

    def _refused(self, error: Exception) -> None:
        logger.error("Unable to rotate token: %s", error)


def _token_in(path: Path) -> str:
    """Return the token in a file. Raises OSError if there is none."""
    try:
        token = trim_space(read_bounded(path).decode("ascii"))
    except UnicodeDecodeError:
        raise OSError(f'the token in the file "{path}" is not ASCII') from None
    if not token:
        raise OSError(f'read empty token from file "{path}"')
    return token
