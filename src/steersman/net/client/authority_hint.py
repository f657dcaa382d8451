"""Why a certificate leads to no trusted authority though one of that name is trusted, as crypto/x509 tells it.

Python's ssl does not show a certificate that it has refused. A second handshake shows it, with this server's own
certificate left out, and nothing is sent after it: what is found is for a text only.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from steersman.net.http1.head import quoted

_CONSTRAINT = "x509: invalid signature: parent certificate cannot sign this kind of certificate"
_FAILURES = (
    (ec.EllipticCurvePublicKey, "x509: ECDSA verification failure"),
    (rsa.RSAPublicKey, "crypto/rsa: verification error"),
    (ed25519.Ed25519PublicKey, "x509: Ed25519 verification failure"),
)


def seeing_context() -> ssl.SSLContext:
    """Takes any certificate, and shows none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def hint(certificate: bytes, authorities: Sequence[bytes]) -> str:
    """What follows `certificate signed by unknown authority`, "" if nothing does; all are DER."""
    try:
        leaf = x509.load_der_x509_certificate(certificate)
        issuer = leaf.issuer.public_bytes()
        for each in authorities:
            if issuer not in each:
                continue  # most of a system's authorities need not be read
            authority = x509.load_der_x509_certificate(each)
            if authority.subject == leaf.issuer and (why := _failure(leaf, authority)):
                return (
                    f" (possibly because of {quoted(why.encode())} while trying to verify candidate authority "
                    f"certificate {quoted(_name(authority).encode())})"
                )
    except ValueError:  # what cannot be read explains nothing
        return ""
    return ""


def _failure(leaf: x509.Certificate, authority: x509.Certificate) -> str:
    if not _may_sign(authority):
        return _CONSTRAINT
    try:
        leaf.verify_directly_issued_by(authority)
    except InvalidSignature:
        key = authority.public_key()
        return next((text for kind, text in _FAILURES if isinstance(key, kind)), "")
    except (TypeError, UnsupportedAlgorithm):
        return ""
    return ""


def _may_sign(authority: x509.Certificate) -> bool:
    try:
        if not authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return False
    except x509.ExtensionNotFound:
        return authority.version is x509.Version.v1
    try:
        return authority.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return True


def _name(authority: x509.Certificate) -> str:
    for oid in (x509.NameOID.COMMON_NAME, x509.NameOID.ORGANIZATION_NAME):
        for attribute in authority.subject.get_attributes_for_oid(oid):
            if attribute.value:
                return str(attribute.value)
    return f"serial:{authority.serial_number}"
