"""The client certificate of this server for aggregated servers (`--proxy-client-cert-file`), and verification of
theirs.

Follows k8s.io/client-go `transport` (TLSConfigFor) and kube-aggregator's BuildTransportConfig.
"""

from __future__ import annotations

import logging
import ssl
from typing import Final

from steersman.machinery.go.pem import blocks
from steersman.net.client.tls import HTTP1, HTTP2, Protocols, client_context
from steersman.net.tls import check_file
from steersman.work.bounded_cache import BoundedCache
from steersman.work.followed_files import FollowedFiles

logger = logging.getLogger(__name__)

_MOST_CONTEXTS: Final = 256


_Contexts = BoundedCache[tuple[bytes, bool, Protocols], ssl.SSLContext]


class BackendTLSError(Exception):
    """Raised when the settings of an APIService do not allow TLS; the text is Go's."""


class ClientIdentity:
    """The client certificate and key of this server, read again when they change, and the TLS contexts with them.

    There is one context for each CA bundle.
    """

    def __init__(self, cert_file: str = "", key_file: str = "") -> None:
        self._files = (cert_file, key_file) if cert_file and key_file else ()
        self._contexts = FollowedFiles(self._files, self._checked, _refused, first=_no_contexts)

    def tls(self, ca_bundle: bytes, *, insecure: bool, protocols: Protocols = HTTP2) -> ssl.SSLContext:
        """Return the current context for servers with this CA bundle; the same object while nothing changes.

        Raises BackendTLSError.
        """
        contexts = self._contexts.current()
        key = (ca_bundle, insecure, protocols)
        context = contexts[key]
        if context is None:
            context = self._load(ca_bundle, insecure=insecure, protocols=protocols)
            contexts.keep(key, context)
        return context

    def _checked(self) -> _Contexts:
        """Return an empty cache of contexts after a check of the files. Raises ValueError."""
        try:
            self._load(b"", insecure=True, protocols=HTTP1)
        except BackendTLSError as error:
            raise ValueError(str(error)) from None
        return _no_contexts()

    def _load(self, ca_bundle: bytes, *, insecure: bool, protocols: Protocols) -> ssl.SSLContext:
        context = client_context(protocols, insecure=insecure)
        if not insecure:
            if ca_bundle:
                _trust(context, ca_bundle)
            else:
                context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if self._files:
            try:
                for name in self._files:
                    check_file(name)
                context.load_cert_chain(*self._files, password=lambda: "")
            except (OSError, ValueError) as error:
                raise BackendTLSError(f"tls: {error}") from None
        return context


def _refused(error: Exception) -> None:
    logger.warning("the proxy's client certificate has changed but cannot be used: %s", error)


def _no_contexts() -> _Contexts:
    return BoundedCache(_MOST_CONTEXTS)


def _trust(context: ssl.SSLContext, ca_bundle: bytes) -> None:
    """Add the parsable certificates of a bundle to the context. Raises BackendTLSError if there are none."""
    certificates = list(blocks(ca_bundle))
    is_trusted = False
    failure = "no valid certificate authority data seen" if certificates else "unable to parse bytes as PEM block"
    for each in certificates:
        if each.type != "CERTIFICATE" or each.has_headers:
            continue
        try:
            context.load_verify_locations(cadata=each.content)
            is_trusted = True
        except (ssl.SSLError, ValueError):
            failure = "failed to parse certificate: x509: malformed certificate"
    if not is_trusted:
        raise BackendTLSError(failure)
