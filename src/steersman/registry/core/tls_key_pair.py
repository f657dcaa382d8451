"""Matching of a PEM certificate and private key (Go's crypto/tls `X509KeyPair`)."""

from __future__ import annotations

from typing import Final

from steersman.machinery.go.pem import blocks

_CERTIFICATE: Final = "CERTIFICATE"
_PRIVATE_KEY: Final = "PRIVATE KEY"


def _certificate(text: bytes) -> tuple[bytes, str]:
    """Return the DER of the first certificate, or an error text."""
    skipped: list[str] = []
    for block in blocks(text):
        if block.type == _CERTIFICATE:
            return block.content, ""
        skipped.append(block.type)
    if not skipped:
        return b"", "tls: failed to find any PEM data in certificate input"
    if len(skipped) == 1 and skipped[0].endswith(_PRIVATE_KEY):
        return b"", (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    return b"", (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following '
        f"types: [{' '.join(skipped)}]"
    )


def _private_key(text: bytes) -> tuple[bytes, str]:
    """Return the DER of the first private key, or an error text."""
    skipped: list[str] = []
    for block in blocks(text):
        if block.type == _PRIVATE_KEY or block.type.endswith(f" {_PRIVATE_KEY}"):
            return block.content, ""
        skipped.append(block.type)
    if not skipped:
        return b"", "tls: failed to find any PEM data in key input"
    if skipped == [_CERTIFICATE]:
        return b"", "tls: found a certificate rather than a key in the PEM for the private key"
    return b"", (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of '
        f"the following types: [{' '.join(skipped)}]"
    )


def key_pair_error(certificate: bytes, key: bytes) -> str:
    """Return an error text if certificate and key do not match, "" if they do."""
    # Imported on first use: the import is slow and startup does not need it.
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key

    certificate_der, fault = _certificate(certificate)
    if fault:
        return fault
    key_der, fault = _private_key(key)
    if fault:
        return fault
    try:
        public = x509.load_der_x509_certificate(certificate_der).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        private = load_der_private_key(key_der, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    own = private.public_key()
    if type(own) is not type(public):
        return "tls: private key type does not match public key type"
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if own.public_bytes(*form) != public.public_bytes(*form):
        return "tls: private key does not match public key"
    return ""
