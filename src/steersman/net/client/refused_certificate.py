"""Reasons why a certificate is not trusted, as crypto/x509 words them: authority, names, dates.

Python's ssl does not expose a certificate that it has refused. A second handshake, without a client certificate and
without verification, obtains it. Nothing is sent afterwards: the certificate serves only the error text.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from steersman.net.ascii import lower
from steersman.net.http1.head import quoted

_MOST_NAMES: Final = 100
"""Number of names in a certificate from which on the text gives only their number."""
_RFC_3339: Final = "%Y-%m-%dT%H:%M:%SZ"
_CONSTRAINT = "x509: invalid signature: parent certificate cannot sign this kind of certificate"
_FAILURES = (
    (ec.EllipticCurvePublicKey, "x509: ECDSA verification failure"),
    (rsa.RSAPublicKey, "crypto/rsa: verification error"),
    (ed25519.Ed25519PublicKey, "x509: Ed25519 verification failure"),
)


def seeing_context() -> ssl.SSLContext:
    """Return a context that accepts any server certificate and sends no client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def why_unknown(certificate: bytes, authorities: Sequence[bytes]) -> str:
    """Return the reason why a certificate leads to none of the authorities; all are DER.

    If one of the authorities has the name of the certificate's issuer, the text says why the signature check fails.
    """
    return f"certificate signed by unknown authority{_candidate(certificate, authorities)}"


def why_not_for(certificate: bytes, host: str) -> str:
    """Return the reason why a certificate is not valid for a host, or "" if it cannot be read."""
    try:
        leaf = x509.load_der_x509_certificate(certificate)
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
        if _matches(_common_name(leaf), host):
            return "certificate relies on legacy Common Name field, use SANs instead"
    except ValueError:
        return ""
    try:
        ip_address(host)
    except ValueError:
        kind, valid = "names", names.get_values_for_type(x509.DNSName)
    else:
        kind, valid = "IP SANs", [str(each) for each in names.get_values_for_type(x509.IPAddress)]
        if not valid:
            return f"cannot validate certificate for {host} because it doesn't contain any IP SANs"
    if len(valid) >= _MOST_NAMES:
        return f"certificate is valid for {len(valid)} {kind}, but none matched {host}"
    if not valid:
        return f"certificate is not valid for any names, but wanted to match {host}"
    return f"certificate is valid for {', '.join(valid)}, not {host}"


def why_out_of_date(certificate: bytes) -> str:
    """Return the text for an expired or not yet valid certificate, or "" if it is valid now or cannot be read."""
    try:
        leaf = x509.load_der_x509_certificate(certificate)
        first, last = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    except ValueError:
        return ""
    now = datetime.now(UTC)
    text = f"certificate has expired or is not yet valid: current time {now:{_RFC_3339}}"
    if now < first:
        return f"{text} is before {first:{_RFC_3339}}"
    return f"{text} is after {last:{_RFC_3339}}" if now > last else ""


def _common_name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(names[-1].value) if names else ""


def _matches(pattern: str, host: str) -> bool:
    """Return True if `pattern`, which may begin with `*.`, matches `host`."""
    wanted, labels = lower(pattern).split("."), lower(host.removesuffix(".")).split(".")
    if not pattern or not host or len(wanted) != len(labels):
        return False
    return wanted[1:] == labels[1:] and wanted[0] in ("*", labels[0])


def _candidate(certificate: bytes, authorities: Sequence[bytes]) -> str:
    try:
        leaf = x509.load_der_x509_certificate(certificate)
        issuer = leaf.issuer.public_bytes()
        for each in authorities:
            if issuer not in each:
                continue  # saves the parsing of most of a system's authorities
            authority = x509.load_der_x509_certificate(each)
            if authority.subject == leaf.issuer and (why := _failure(leaf, authority)):
                return (
                    f" (possibly because of {quoted(why.encode())} while trying to verify candidate authority "
                    f"certificate {quoted(_name(authority).encode())})"
                )
    except ValueError:  # an unreadable certificate explains nothing
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
