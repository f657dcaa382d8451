"""Certificates that simulated containers create: a certificate authority, and certificates it signs for host names."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman.machinery.values import times

_YEARS: Final = timedelta(days=36500)


def certificates_of(hosts: list[str]) -> tuple[bytes, bytes, bytes]:
    """Create a certificate authority and a certificate for host names.

    Returns the authority's certificate, the certificate for the hosts and its key, in PEM. Raises ValueError.
    """
    authority, [(certificate, key)] = signed_certificates([hosts])
    return authority, certificate, key


def signed_certificates(hosts: Sequence[list[str]]) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Create a certificate authority and a certificate for each list of host names.

    Returns the authority's certificate and a list of certificates with their keys, in PEM. Raises ValueError.
    """
    begins = datetime.fromtimestamp(times.unix_now(), UTC) - timedelta(hours=1)
    authority, key = _name("nil1"), ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateBuilder(issuer_name=authority, not_valid_before=begins, not_valid_after=begins + _YEARS)
    made = (
        builder.subject_name(authority)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificates: list[tuple[bytes, bytes]] = []
    for names in hosts:
        own = ec.generate_private_key(ec.SECP256R1())
        signed = (
            builder.subject_name(_name("nil2"))
            .public_key(own.public_key())
            .serial_number(x509.random_serial_number())
            .add_extension(x509.SubjectAlternativeName([_alternative(each) for each in names]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(key, hashes.SHA256())
        )
        certificates.append(
            (
                signed.public_bytes(serialization.Encoding.PEM),
                own.private_bytes(
                    serialization.Encoding.PEM,
                    serialization.PrivateFormat.TraditionalOpenSSL,
                    serialization.NoEncryption(),
                ),
            )
        )
    return made.public_bytes(serialization.Encoding.PEM), certificates


def _name(organization: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
