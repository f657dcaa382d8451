"""Client certificates: their users, and rejected certificates."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman.authentication.client_certificate import UID_OID, ClientCertificateAuthenticator, describe
from steersman.authentication.interface import AuthenticationError, Credentials
from tests.authentication.certificates import KEY, NOW, Clock, certificate, name, root

UID = x509.ObjectIdentifier(UID_OID)


@pytest.fixture
def clock() -> Any:
    return Clock()


@pytest.fixture
def authenticator(clock: Any) -> Any:
    return ClientCertificateAuthenticator(clock=clock)


def shown(der: Any, *, verified: Any = True) -> Any:
    return Credentials(client_certificate=der, certificate_verified=verified)


ALICE = name((NameOID.ORGANIZATION_NAME, "dev"), (NameOID.COMMON_NAME, "alice"), (NameOID.ORGANIZATION_NAME, "ops"))


def test_subject_gives_name_groups_uid_and_credential_id(authenticator: Any) -> None:
    der = certificate(name((NameOID.ORGANIZATION_NAME, "dev"), (NameOID.COMMON_NAME, "alice"), (UID, "u-1")))
    user = authenticator.authenticate(shown(der))
    assert (user.name, user.uid, user.groups) == ("alice", "u-1", ("dev", "system:authenticated"))
    fingerprint = x509.load_der_x509_certificate(der).fingerprint(SHA256()).hex()
    assert user.extra == {"authentication.kubernetes.io/credential-id": (f"X509SHA256={fingerprint}",)}


def test_every_organization_is_a_group_in_order(authenticator: Any) -> None:
    assert authenticator.authenticate(shown(certificate(ALICE))).groups == ("dev", "ops", "system:authenticated")


def test_how_long_certificates_last_is_told_of_bad_ones_too(clock: Any) -> None:
    told: list[float] = []
    judge = ClientCertificateAuthenticator(clock=clock, remaining=told.append)
    der = certificate(ALICE)
    judge.authenticate(shown(der))
    judge.authenticate(shown(der))
    with pytest.raises(AuthenticationError):
        judge.authenticate(shown(certificate(name((NameOID.COMMON_NAME, "bob"))), verified=False))
    with pytest.raises(AuthenticationError, match="cannot be parsed"):
        judge.authenticate(shown(b"none"))
    ends = x509.load_der_x509_certificate(der).not_valid_after_utc.timestamp()
    assert told[:2] == [ends - clock()] * 2
    assert len(told) == 3


def test_no_certificate_and_no_common_name_are_no_opinion(authenticator: Any) -> None:
    assert authenticator.authenticate(Credentials()) is None
    assert authenticator.authenticate(shown(certificate(name((NameOID.ORGANIZATION_NAME, "dev"))))) is None


@pytest.mark.parametrize(
    ("uids", "message"),
    [(["a", "b"], "expected 1 UID, but found multiple: [a b]"), ([""], "UID cannot be an empty string")],
)
def test_odd_uids_are_refused(authenticator: Any, uids: list[Any], message: str) -> None:
    subject = name((NameOID.COMMON_NAME, "alice"), *[(UID, each) for each in uids if each])
    if uids == [""]:  # a builder does not make one
        attribute = x509.NameAttribute(UID, "", _validate=False)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alice"), attribute])
    with pytest.raises(AuthenticationError) as refused:
        authenticator.authenticate(shown(certificate(subject)))
    assert str(refused.value) == message


def test_a_remembered_certificate_is_still_refused_once_it_has_ended(authenticator: Any, clock: Any) -> None:
    der = certificate(ALICE)
    first = authenticator.authenticate(shown(der))
    assert authenticator.authenticate(shown(der)) is first
    clock.now = NOW + timedelta(days=2)
    with pytest.raises(AuthenticationError, match=r"SN=77.*expired or is not yet valid"):
        authenticator.authenticate(shown(der))
    clock.now = NOW - timedelta(days=2)
    with pytest.raises(AuthenticationError, match="not yet valid"):
        authenticator.authenticate(shown(der))


@pytest.mark.parametrize("usage", [None, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE])
def test_unlimited_certificates_are_accepted(authenticator: Any, usage: Any) -> None:
    assert authenticator.authenticate(shown(certificate(ALICE, usage=usage))).name == "alice"


def test_serving_certificates_are_not_accepted(authenticator: Any) -> None:
    with pytest.raises(AuthenticationError, match="incompatible key usage"):
        authenticator.authenticate(shown(certificate(ALICE, usage=ExtendedKeyUsageOID.SERVER_AUTH)))


def test_what_tls_has_not_verified_is_refused(authenticator: Any) -> None:
    with pytest.raises(AuthenticationError, match="unknown authority"):
        authenticator.authenticate(shown(certificate(ALICE), verified=False))


@pytest.mark.parametrize("der", [b"", b"nonsense", certificate(ALICE)[:-40]])
def test_what_is_no_certificate_is_refused(authenticator: Any, der: Any) -> None:
    with pytest.raises(AuthenticationError, match="cannot be parsed"):
        authenticator.authenticate(shown(der))


def test_with_roots_only_their_certificates_count(clock: Any) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    authenticator = ClientCertificateAuthenticator(root("x", other) + root(), clock=clock)
    user = authenticator.authenticate(shown(certificate(ALICE)))
    assert user is not None
    assert user.name == "alice"
    for forged in (certificate(ALICE, signer=other), certificate(ALICE, issuer="y")):
        with pytest.raises(AuthenticationError, match="unknown authority"):
            authenticator.authenticate(shown(forged))


def test_the_extensions_of_a_large_certificate_that_nobody_vouches_for_are_not_read(authenticator: Any) -> None:
    names = x509.SubjectAlternativeName([x509.DNSName(f"name-{number}") for number in range(1000)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name((NameOID.COMMON_NAME, "jane")))
        .issuer_name(name((NameOID.COMMON_NAME, "jane")))
        .public_key(KEY.public_key())
        .serial_number(7)
        .not_valid_before(NOW)
        .not_valid_after(NOW)
        .add_extension(x509.SubjectKeyIdentifier(b"abc"), critical=False)
    )
    small, large = (
        each.sign(KEY, SHA256()).public_bytes(Encoding.DER)
        for each in (builder, builder.add_extension(names, critical=False))
    )
    assert describe(small) == "verifying certificate SN=7, SKID=61:62:63, AKID= failed"
    assert describe(large) == "verifying certificate SN=7, SKID=, AKID= failed"
    with pytest.raises(AuthenticationError, match="SN=7, SKID=, AKID= failed: x509: certificate signed by unknown"):
        authenticator.authenticate(shown(large, verified=False))
