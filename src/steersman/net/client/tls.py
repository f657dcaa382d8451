"""TLS of outgoing connections: offered protocols and verification of certificates."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from typing import Final

Protocols = tuple[str, ...]
HTTP1: Final[Protocols] = ("http/1.1",)
HTTP2: Final[Protocols] = ("h2", "http/1.1")
"""HTTP/2 if the other side supports it, else HTTP/1.1."""

ClientTLS = Callable[[Protocols], ssl.SSLContext]
"""Function from ALPN protocols to a context; it returns the same context until the configuration changes."""


def client_context(protocols: Protocols, *, insecure: bool = False) -> ssl.SSLContext:
    """Return a client context without trusted authorities; if `insecure`, it accepts any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _verify_as_go(context)
    context.set_alpn_protocols(list(offered(protocols)))
    return context


def offered(protocols: Protocols, variables: Mapping[str, str] = os.environ) -> Protocols:
    """Return the protocols to offer: DISABLE_HTTP2 removes HTTP/2, as in client-go."""
    return HTTP1 if variables.get("DISABLE_HTTP2") else protocols


def _verify_as_go(context: ssl.SSLContext) -> None:
    """Make a context verify as crypto/x509 does, regardless of Python's defaults.

    Any trusted certificate ends a chain, not only a self-signed one. Extensions that RFC 5280 demands of authorities,
    such as key identifiers, may be missing (Python 3.13 demands them by default). Host names are matched only against
    subject alternative names, never against the common name.
    """
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags = ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
