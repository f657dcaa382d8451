"""Trust in the cluster's API server: the ConfigMap kube-system/extension-apiserver-authentication.

It has the authorities of users' client certificates, and the authorities and header names of the proxies whose identity
headers are trusted. Follows k8s.io/apiserver `server/options` DelegatingAuthenticationOptions, with its
`DynamicCAFromConfigMapController` and `RequestHeaderAuthRequestController`. Invalid or missing data keep the previous
settings.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from steersman.api.core.v1 import ConfigMap
from steersman.authentication.authorities import Certificates, certificates_in
from steersman.authentication.client_certificate import ClientCertificateAuthenticator
from steersman.authentication.interface import Credentials
from steersman.authentication.request_header import HeaderNames, RequestHeaderAuthenticator
from steersman.authentication.user import UserInfo
from steersman.client.informer import Informer
from steersman.client.resources import CONFIG_MAPS
from steersman.library.aggregated.cluster import Cluster
from steersman.machinery.go.pem import blocks
from steersman.machinery.private_files import write_whole
from steersman.net.message import Headers

logger = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class AuthenticationInfo:
    """The content of the ConfigMap.

    The authorities of clients and of proxies are PEM, empty for none. `headers` are those of proxies, `allowed_names`
    the accepted names in proxies' certificates, empty for any.
    """

    client_ca: bytes = b""
    proxy_ca: bytes = b""
    headers: HeaderNames = field(default_factory=HeaderNames)
    allowed_names: tuple[str, ...] = ()


def read_info(data: Mapping[str, str]) -> AuthenticationInfo:
    """Parse the ConfigMap's data. Raises ValueError for invalid lists, or authorities without a certificate."""
    user, uid, group, extra, allowed = (
        _texts(data, f"requestheader-{name}")
        for name in ("username-headers", "uid-headers", "group-headers", "extra-headers-prefix", "allowed-names")
    )
    return AuthenticationInfo(
        _authorities(data, "client-ca-file"),
        _authorities(data, "requestheader-client-ca-file"),
        HeaderNames.from_names(user, uid, group, extra),
        allowed,
    )


def _texts(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    found = json.loads(data.get(key) or "[]")
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ValueError(f"{key} is no list of strings")
    return tuple(found)


def _authorities(data: Mapping[str, str], key: str) -> bytes:
    text = data.get(key, "").encode()
    if text and not any(each.type == "CERTIFICATE" for each in blocks(text)):
        raise ValueError(f"{key} has no certificate")
    return text


class _ReplaceableAuthorities:
    """Authorities that can be replaced; see authorities.CertificateVerifier."""

    def __init__(self) -> None:
        self._certificates = Certificates()

    def replace(self, pem: bytes) -> None:
        self._certificates = Certificates(certificates_in(pem))

    def verify(self, chain: Sequence[bytes]) -> bool:
        return self._certificates.verify(chain)


class _Proxies:
    """The authenticator of proxies with the current settings; initially it trusts no proxy."""

    def __init__(self) -> None:
        self._authorities = _ReplaceableAuthorities()
        self._current: RequestHeaderAuthenticator | None = None

    def replace_info(self, info: AuthenticationInfo) -> None:
        self._authorities.replace(info.proxy_ca)
        self._current = RequestHeaderAuthenticator(info.headers, self._authorities, info.allowed_names)

    def clear(self, headers: Headers) -> None:
        """Remove the identity headers; see HeaderNames."""
        if self._current is not None:
            self._current.headers.clear(headers)

    def authenticate(self, credentials: Credentials) -> UserInfo | None:
        return None if self._current is None else self._current.authenticate(credentials)


class ClusterTrust:
    """The trusted authorities, between `start` and `stop`: `proxies` and `certificates` authenticate requests.

    The authorities of both are written to `bundle` for TLS, after the server's `own` (PEM); then `changed` is called.
    """

    def __init__(self, cluster: Cluster, bundle: Path, own: bytes) -> None:
        self.bundle = bundle
        self.changed: Callable[[], None] = lambda: None
        self.proxies = _Proxies()
        self._clients = _ReplaceableAuthorities()
        self.certificates = ClientCertificateAuthenticator(authorities=self._clients)
        self._own = own
        self._info = AuthenticationInfo()
        self._cluster = cluster
        self._informer = Informer(
            cluster.client, CONFIG_MAPS, namespace=NAMESPACE, field_selector=f"metadata.name={NAME}"
        )
        self._informer.on_change(lambda _, new: self._apply(new))

    async def start(self) -> None:
        """Return once the ConfigMap is known. Raises StatusError, and OSError if the bundle cannot be written."""
        self._write(AuthenticationInfo())
        await self._cluster.start_informer(self._informer)
        if not self._info.proxy_ca:
            logger.warning("%s has no authority of proxies: identity headers are not trusted", NAME)

    async def stop(self) -> None:
        """Stop following the ConfigMap."""
        await self._informer.stop()

    def _apply(self, found: ConfigMap | None) -> None:
        if found is None or found.metadata.name != NAME:
            return
        try:
            info = read_info(found.data)
        except ValueError as error:
            logger.warning("configmap %s/%s is invalid, the previous settings stay: %s", NAMESPACE, NAME, error)
            return
        if not info.client_ca:
            info = replace(info, client_ca=self._info.client_ca)
        if not info.proxy_ca:
            before = self._info
            info = AuthenticationInfo(info.client_ca, before.proxy_ca, before.headers, before.allowed_names)
        if info == self._info:
            return
        self._write(info)
        self._info = info
        self._clients.replace(info.client_ca)
        if info.proxy_ca:
            self.proxies.replace_info(info)
        self.changed()

    def _write(self, info: AuthenticationInfo) -> None:
        write_whole(self.bundle, b"\n".join((self._own, info.client_ca, info.proxy_ca)), 0o644)
