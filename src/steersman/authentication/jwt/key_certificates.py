"""Certificates of JSON Web Keys: checks that a certificate belongs to the key and has the given digests (RFC 7517,
4.7).

Follows go-jose v2, error texts included.
"""

from __future__ import annotations

import base64
from hashlib import sha1, sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

MOST_CERTIFICATES: Final = 16
"""Limit of certificates in the chain of a key; kube-apiserver has no such limit."""
_INVALID: Final = "go-jose/go-jose: invalid JWK, "
_SIZES: Final = {"x5t": 20, "x5t#S256": 32}


class KeyCertificateError(ValueError):
    """The key cannot be used; the text is go-jose's."""


def check_certificates(chain: tuple[str, ...], digests: dict[str, str], public_key: object | None) -> None:
    """Raise KeyCertificateError unless the first certificate of the chain (x5c) matches the key and the digests.

    `public_key` is a key of `cryptography`, or None; `digests` are by name, and may be empty.
    """
    if len(chain) > MOST_CERTIFICATES:
        raise KeyCertificateError(f"{_INVALID}more than {MOST_CERTIFICATES} certificates")
    leaf = _leaf(chain)
    if leaf is not None and public_key is not None and leaf.public_key() != public_key:
        raise KeyCertificateError(f"{_INVALID}public keys in key and x5c fields to not match")
    given = {name: _digest(name, text) for name, text in digests.items()}
    for name, digest in given.items():
        if digest and len(digest) != _SIZES[name]:
            raise KeyCertificateError(f"{_INVALID}{name} header is of incorrect size")
    if leaf is None:
        return
    der = base64.b64decode(chain[0])
    known = {"x5t": sha1(der, usedforsecurity=False).digest(), "x5t#S256": sha256(der).digest()}
    for name, digest in given.items():
        if digest and digest != known[name]:
            raise KeyCertificateError(f"{_INVALID}x5c thumbprint does not match {name} value")


def _leaf(chain: tuple[str, ...]) -> Certificate | None:
    """Return the first certificate, None without one; all certificates must be valid. Raises KeyCertificateError."""
    from cryptography.x509 import load_der_x509_certificate

    try:
        found = [load_der_x509_certificate(base64.b64decode(each, validate=True)) for each in chain]
        if found:
            found[0].public_key()  # cryptography parses parts lazily
    except ValueError as error:
        raise KeyCertificateError(f"go-jose/go-jose: failed to unmarshal x5c field: {error}") from None
    return found[0] if found else None


def _digest(name: str, text: str) -> bytes:
    """Return a digest given in base64url; some keys have its hexadecimal form inside. Raises KeyCertificateError."""
    try:
        if "=" in text:
            raise ValueError
        found = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise KeyCertificateError(f"{_INVALID}{name} header has invalid encoding") from None
    if len(found) != 2 * _SIZES[name]:
        return found
    try:
        return bytes.fromhex(found.decode("ascii"))
    except ValueError:
        raise KeyCertificateError(f"{_INVALID}unable to hex decode {name}") from None
