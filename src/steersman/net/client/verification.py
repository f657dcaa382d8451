"""How certificates of servers that this one calls are judged: as Go does, whatever Python's defaults are."""

from __future__ import annotations

import ssl


def judge_as_go(context: ssl.SSLContext) -> None:
    """Makes a client's context verify as crypto/x509 does.

    Any certificate among the trusted ones ends a chain, not only a self-signed one. Extensions that RFC 5280 wants of
    authorities, such as key identifiers, may be missing (Python 3.13 asks for them by default). A name counts only as a
    subject alternative name, never as the common name.
    """
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags = ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
