"""Kubeconfig files that say how this server reaches another one, e.g. a webhook; read as client-go's clientcmd does."""

from __future__ import annotations

import base64
import logging
import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from steersman.machinery.codec.configuration import media_of
from steersman.machinery.codec.strict import DecodeError, decode_untyped, peek_type_meta, yaml_as_json
from steersman.machinery.errors.field import quote
from steersman.machinery.go.os_errors import reason
from steersman.machinery.go.strings import trim_space
from steersman.machinery.go.urls import shown_url
from steersman.machinery.private_files import read_bounded, warn_of_access
from steersman.net.client.egress import Dial
from steersman.net.client.tls import HTTP1, HTTP2, ClientTLS, Protocols, client_context
from steersman.net.client.transport import Address, Locate, Sender
from steersman.work.followed_files import FollowedFiles

logger = logging.getLogger(__name__)

NO_CONFIGURATION: Final = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)
_HTTPS: Final = ":443"
_NOT_SUPPORTED: Final = {"cluster": ("proxy-url",), "user": ("exec", "auth-provider", "as", "as-uid", "as-groups")}


class KubeconfigError(ValueError):
    """A kubeconfig that cannot be used; the text is upstream's where it has one."""


class Endpoint(Struct, frozen=True):
    """Another server: where it is, and who this one is to it."""

    url: str
    """Without a user and a password."""
    address: Address
    target: str
    """The path, and a query if there is one."""
    tls: ClientTLS
    server_name: str
    """By which its certificate is verified."""
    credentials: Callable[[], str]
    """The Authorization header, empty for none. Raises OSError if it is in a file that cannot be read."""
    locate: Locate | None = None
    """Finds out for each connection where it is made to, where that is not the address."""
    protocols: Protocols = HTTP1
    sender: Sender | None = None
    """What requests are sent with, where that is not a transport."""
    leave: Dial | None = None
    """How connections leave, where that is not as usual."""
    user_shown: str = ""
    """The user of its URL as messages have it, with `@`; a password in it is `***`, as in Go's messages."""

    @property
    def shown(self) -> str:
        """The URL for messages, without its query: that may hold a key."""
        scheme, _, rest = shown_url(self.url).partition("://")
        return f"{scheme}://{self.user_shown}{rest}"


class Login(Struct, frozen=True):
    """Who this server is to another one, where that is said apart from where that is."""

    credentials: Callable[[], str]
    """See Endpoint."""
    certificate: bytes = b""
    key: bytes = b""


def _no_credentials() -> str:
    return ""


ANONYMOUS: Final = Login(_no_credentials)


def load_logins(path: Path) -> Callable[[str], Login]:
    """Who this server is to a host ("name:port"): the user of that name, of "*.DOMAIN" or "*", or that of the current
    context (apiserver `util/webhook` AuthenticationInfoResolver).

    Raises KubeconfigError, for a user that cannot be one too.
    """
    config, folder = _read(path), path.absolute().parent
    logins: dict[str, Login] = {}
    for each in config.get("users") or () if isinstance(config, dict) else ():
        name = _text(each, "name")
        user = _named(config, "users", "user", name) or {}
        _check_supported("user", user, path)
        logins[name] = _login(_Files(folder, user, name))
    context = _named(config, "contexts", "context", _text(config, "current-context"))
    usual = logins.get("*") or logins.get(_text(context or {}, "user")) or ANONYMOUS

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


def _login(user: _Files) -> Login:
    certificate, key = user.pem("client-certificate", "client-cert"), user.pem("client-key", "client-key")
    return Login(_credentials(user), certificate, key)


def _read(path: Path) -> Any:
    """What a kubeconfig says, as plain data. Raises KubeconfigError."""
    try:
        data = read_bounded(path)
    except OSError as error:
        raise KubeconfigError(f"stat {path}: {reason(error)}") from None
    try:
        peek_type_meta(data, media_of(data))
        return decode_untyped(data if media_of(data) == "json" else yaml_as_json(data)) or {}
    except DecodeError as error:
        raise KubeconfigError(f"error loading config file {quote(str(path))}: {error}") from None


def _check_supported(what: str, given: Mapping[str, Any], path: Path) -> None:
    for key in _NOT_SUPPORTED[what]:
        if given.get(key):
            raise KubeconfigError(f"not supported yet: {key} in {path}")


def load_kubeconfig(path: Path) -> Endpoint:
    """The server of the current context, and the user's credentials. Raises KubeconfigError."""
    config = _read(path)
    name = _text(config, "current-context")
    context = _named(config, "contexts", "context", name)
    if name and context is None:
        raise KubeconfigError(
            f"invalid configuration: [context was not found for specified context: {name}, "
            "cluster has no server defined]"
        )
    cluster_name, user_name = (_text(context or {}, each) for each in ("cluster", "user"))
    cluster = _named(config, "clusters", "cluster", cluster_name)
    user = _named(config, "users", "user", user_name) or {}
    if not cluster:
        raise KubeconfigError(NO_CONFIGURATION)
    for what, given in (("cluster", cluster), ("user", user)):
        _check_supported(what, given, path)
    server = _text(cluster, "server")
    if not server:
        raise KubeconfigError(f"invalid configuration: no server found for cluster {quote(cluster_name)}")
    return _endpoint(
        server, _Files(path.absolute().parent, cluster, cluster_name), _Files(path.absolute().parent, user, user_name)
    )


class _Files:
    """A cluster or a user: its members are given themselves, in base64 (`NAME-data`), or as the path of a file."""

    def __init__(self, folder: Path, given: dict[str, Any], name: str) -> None:
        self.folder = folder
        self.given = given
        self.name = name

    def text(self, key: str) -> str:
        return _text(self.given, key)

    def path(self, key: str) -> Path | None:
        text = self.text(key)
        return self.folder / text if text else None

    def pem(self, key: str, shown: str) -> bytes:
        """What is given under `key`, empty if nothing is. Raises KubeconfigError."""
        if text := self.text(f"{key}-data"):
            try:
                return base64.b64decode(text, validate=True)
            except ValueError as error:  # binascii.Error, or text that is not ASCII
                raise KubeconfigError(f"invalid configuration: {key}-data of {self.name}: {error}") from None
        path = self.path(key)
        if path is None:
            return b""
        try:
            data = read_bounded(path)
            if shown == "client-key":
                warn_of_access(path)
        except OSError as error:
            why = f"unable to read {shown} {path} for {self.name} due to open {path}: {reason(error)}"
            raise KubeconfigError(f"invalid configuration: {why}") from None
        if not data:  # none would mean the system's authorities, or no credentials
            raise KubeconfigError(f"invalid configuration: {shown} {path} for {self.name} is empty")
        return data


def _endpoint(server: str, cluster: _Files, user: _Files) -> Endpoint:
    insecure = bool(cluster.given.get("insecure-skip-tls-verify"))
    authority = cluster.pem("certificate-authority", "certificate-authority")
    certificate, key = user.pem("client-certificate", "client-cert"), user.pem("client-key", "client-key")
    if certificate and not key:
        raise KubeconfigError(
            f"invalid configuration: client-key-data or client-key must be specified for {user.name} to use the "
            "clientCert authentication method."
        )
    if insecure and authority:
        raise KubeconfigError("specifying a root certificates file with the insecure flag is not allowed")
    if "://" not in server:
        server = f"{'https' if authority or insecure or certificate else 'http'}://{server}"
        if urlsplit(server).path not in ("", "/"):
            shown = shown_url(server).partition("://")[2]
            raise KubeconfigError(f"host must be a URL or a host:port pair: {quote(shown)}")
    try:
        url = urlsplit(server)
        port = url.port or {"http": 80, "https": 443}[url.scheme]
    except (ValueError, KeyError):
        raise KubeconfigError(f"the server {quote(shown_url(server))} is no URL of HTTP or HTTPS") from None
    if not url.hostname:
        raise KubeconfigError(f"the server {quote(shown_url(server))} has no host")
    tls: ClientTLS = client_context
    if url.scheme == "https":
        tls = fixed(client_tls(authority, certificate, key, insecure=insecure, protocols=HTTP2))
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    server_name = cluster.text("tls-server-name") or url.hostname
    address = Address(url.hostname, port, url.scheme == "https")
    given, at, _ = url.netloc.rpartition("@")
    name, colon, password = given.partition(":")
    return Endpoint(
        server.replace(f"{given}@", "", 1) if at else server,
        address,
        target,
        tls,
        server_name,
        _basic(unquote(name), unquote(password)) if at else _credentials(user),
        protocols=HTTP2,
        user_shown=f"{name}:***@" if colon else f"{name}{at}",
    )


def _basic(name: str, password: str) -> Callable[[], str]:
    """The user of a URL, who goes before one given otherwise, as in Go."""
    value = f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"
    return lambda: value


def fixed(context: ssl.SSLContext) -> ClientTLS:
    """For a server that is always offered the same protocols."""
    return lambda _: context


def client_tls(
    authority: bytes,
    certificate: bytes = b"",
    key: bytes = b"",
    *,
    insecure: bool = False,
    protocols: Protocols = HTTP1,
) -> ssl.SSLContext:
    """How a server is verified: by an authority in PEM, or by those of the system, which takes milliseconds to read.

    Raises KubeconfigError.
    """
    context = client_context(protocols, insecure=insecure)
    try:
        if authority:
            context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
        elif not insecure:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if certificate:
            with tempfile.NamedTemporaryFile() as file:  # OpenSSL reads them from files only; nobody else may
                file.write(certificate + b"\n" + key)
                file.flush()
                context.load_cert_chain(file.name)
    except ssl.SSLError as error:
        raise KubeconfigError(f"tls: these certificates or keys cannot be used: {error.reason or error}") from None
    return context


def _credentials(user: _Files) -> Callable[[], str]:
    path = user.path("tokenFile")
    if path is not None:
        return _TokenFile(path)
    header = ""
    if token := user.text("token"):
        header = f"Bearer {token}"
    elif user.text("username") or user.text("password"):
        pair = f"{user.text('username')}:{user.text('password')}"
        header = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return lambda: header


class _TokenFile:
    """The header with the token in a file, which is read anew when it has changed, as client-go does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._header: FollowedFiles[str] | None = None

    def __call__(self) -> str:
        """Return the header. Raises OSError if there has been no token in the file yet."""
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


def _named(config: Any, plural: str, singular: str, name: str) -> dict[str, Any] | None:
    """The last item of a list by its name."""
    found = None
    items = config.get(plural) if isinstance(config, dict) else None
    for each in items if isinstance(items, list) else ():
        if isinstance(each, dict) and each.get("name") == name:
            given = each.get(singular)
            found = given if isinstance(given, dict) else {}
    return found


def _text(given: Any, key: str) -> str:
    value = given.get(key) if isinstance(given, dict) else None
    return value if isinstance(value, str) else ""
