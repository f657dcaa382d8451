"""Tests of signed certificates, and of refusals by signers."""

from __future__ import annotations

import ipaddress
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from steersman.controllers.authority import Authority, CannotSign
from steersman.controllers.certificates.requests import (
    KUBE_APISERVER_CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY_UNKNOWN,
    NotSignable,
    Unreadable,
    check,
    common_name,
    parse,
)
from steersman.controllers.certificates.signing import sign
from tests.controllers.certificates.asked import NODE, authority, pem

CLIENT = ("digital signature", "client auth")
SERVING = ("digital signature", "server auth")
HOST = [x509.DNSName("h")]
ADDRESS = [x509.IPAddress(ipaddress.ip_address("10.0.0.1"))]
MAIL = [x509.RFC822Name("a@b.c")]
URI = [x509.UniformResourceIdentifier("spiffe://x")]


def sign_certificate(by: Authority, data: bytes, *usages: str, seconds: int | None = None) -> x509.Certificate:
    return x509.load_pem_x509_certificate(sign(by, parse(data), usages, seconds, time.time()))


def test_a_certificate_says_what_was_asked_for(tmp_path: Path) -> None:
    names = [*HOST, *MAIL, *ADDRESS, *URI]
    by = authority(tmp_path)
    data = pem(("CN", "alice"), ("O", "dev"), ("O", "ops"), ("DC", "dropped"), names=names)
    found = sign_certificate(by, data, "client auth", "digital signature", "key encipherment", "server auth")
    assert found.subject.rfc4514_string() == "CN=alice,O=dev+O=ops"
    usage = found.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert (usage.value.digital_signature, usage.value.key_encipherment, usage.value.key_agreement) == (
        True,
        True,
        False,
    )
    purposes = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [each.dotted_string for each in purposes] == ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]
    assert list(found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value) == names
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    found.verify_directly_issued_by(x509.load_pem_x509_certificate(by.certificate.read_bytes()))


@pytest.mark.parametrize(
    ("seconds", "lasts"),
    [
        (None, timedelta(days=365)),
        (86400, timedelta(days=1)),
        (3600, timedelta(hours=1, minutes=5)),  # a short one lasts from now on
        (60, timedelta(minutes=15)),
        (10**9, timedelta(days=365)),
    ],
)
def test_how_long_it_lasts(tmp_path: Path, seconds: int | None, lasts: timedelta) -> None:
    found = sign_certificate(authority(tmp_path), pem(("CN", "a")), "client auth", seconds=seconds)
    assert found.not_valid_after_utc - found.not_valid_before_utc == lasts
    assert abs(found.not_valid_before_utc - (datetime.now(UTC) - timedelta(minutes=5))) < timedelta(seconds=60)


def test_it_does_not_outlast_its_authority(tmp_path: Path) -> None:
    by = authority(tmp_path, days=2)
    own = x509.load_pem_x509_certificate(by.certificate.read_bytes())
    assert sign_certificate(by, pem(("CN", "a")), "client auth").not_valid_after_utc == own.not_valid_after_utc
    expired = authority(tmp_path, days=1, begins=datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(CannotSign, match="expired in the past"):
        sign_certificate(expired, pem(("CN", "a")), "client auth")


def test_what_cannot_be_signed(tmp_path: Path) -> None:
    by = authority(tmp_path)
    with pytest.raises(CannotSign, match="unrecognized usage values"):
        sign_certificate(by, pem(("CN", "a")), "anything")
    by.key.write_text("none")
    with pytest.raises(CannotSign, match="error reading CA key file"):
        sign_certificate(by, pem(("CN", "a")), "client auth")
    for data in (b"", b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"):
        with pytest.raises(Unreadable):
            parse(data)


@pytest.mark.parametrize("bit", ["encipher only", "decipher only", "cert sign", "content commitment"])
def test_any_bit_of_use_can_be_asked_for(tmp_path: Path, bit: str) -> None:
    found = sign_certificate(authority(tmp_path), pem(("CN", "a")), bit, "key agreement")
    usage = found.extensions.get_extension_for_class(x509.KeyUsage).value
    names = {"cert sign": "key_cert_sign"}
    assert getattr(usage, names.get(bit, bit.replace(" ", "_")))


def test_the_last_common_name_counts() -> None:
    assert common_name(parse(pem(("CN", "a"), ("CN", "b")))) == "b"
    assert common_name(parse(pem())) == ""


@pytest.mark.parametrize(
    ("data", "signer", "usages", "why"),
    [
        (pem(), KUBE_APISERVER_CLIENT, ("server auth",), "invalid usage for client certificate: server auth"),
        (pem(), KUBE_APISERVER_CLIENT, (), "missing required usage for client certificate: client auth"),
        (pem(("O", "dev"), NODE[1]), KUBELET_CLIENT, CLIENT, "subject organization is not system:nodes"),
        (pem(*NODE, names=HOST), KUBELET_CLIENT, CLIENT, "DNS subjectAltNames are not allowed"),
        (pem(*NODE, names=MAIL), KUBELET_CLIENT, CLIENT, "Email subjectAltNames are not allowed"),
        (pem(*NODE, names=ADDRESS), KUBELET_CLIENT, CLIENT, "IP subjectAltNames are not allowed"),
        (pem(*NODE, names=URI), KUBELET_CLIENT, CLIENT, "URI subjectAltNames are not allowed"),
        (pem(*NODE), KUBELET_CLIENT, SERVING, "usages did not match [client auth digital signature key encipherment]"),
        (pem(NODE[0], ("CN", "n")), KUBELET_CLIENT, CLIENT, "subject common name does not begin with system:node:"),
        (pem(*NODE), KUBELET_SERVING, SERVING, "DNS or IP subjectAltName is required"),
        (pem(*NODE, names=[*HOST, *MAIL]), KUBELET_SERVING, SERVING, "Email subjectAltNames are not allowed"),
        (pem(*NODE, names=[*HOST, *URI]), KUBELET_SERVING, SERVING, "URI subjectAltNames are not allowed"),
    ],
)
def test_what_signers_refuse(data: bytes, signer: str, usages: tuple[str, ...], why: str) -> None:
    with pytest.raises(NotSignable) as refused:
        check(parse(data), usages, signer)
    assert str(refused.value) == why


def test_what_signers_take() -> None:
    check(parse(pem(*NODE)), CLIENT, KUBELET_CLIENT)
    check(parse(pem(*NODE)), (*CLIENT, "key encipherment"), KUBELET_CLIENT)
    check(parse(pem(*NODE, names=[*HOST, *ADDRESS])), SERVING, KUBELET_SERVING)
    check(parse(pem(("CN", "a"), names=MAIL)), ("client auth",), KUBE_APISERVER_CLIENT)
    check(parse(pem()), ("any",), LEGACY_UNKNOWN)
