"""The TLS of this server as a client: which protocols it offers, and how it judges certificates."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from typing import Final

Protocols = tuple[str, ...]
HTTP1: Final[Protocols] = ("http/1.1",)
HTTP2: Final[Protocols] = ("h2", "http/1.1")
"""HTTP/2 where the other side speaks it, else HTTP/1.1."""

ClientTLS = Callable[[Protocols], ssl.SSLContext]
"""The context for connections that offer these protocols (ALPN): the same one until something of it has changed."""


def client_context(protocols: Protocols, *, insecure: bool = False) -> ssl.SSLContext:
    """A context that trusts nobody yet, or takes any certificate if it is `insecure`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _judge_as_go(context)
    context.set_alpn_protocols(list(offered(protocols)))
    return context


def offered(protocols: Protocols, variables: Mapping[str, str] = os.environ) -> Protocols:
    """What is offered of these: DISABLE_HTTP2 takes HTTP/2 off, as in client-go."""
    return HTTP1 if variables.get("DISABLE_HTTP2") else protocols


def _judge_as_go(context: ssl.SSLContext) -> None:
    """Makes a client's context verify as crypto/x509 does, whatever Python's defaults are.

    Any certificate among the trusted ones ends a chain, not only a self-signed one. Extensions that RFC 5280 wants of
    authorities, such as key identifiers, may be missing (Python 3.13 asks for them by default). A name counts only as a
    subject alternative name, never as the common name.
    """
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags = ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
