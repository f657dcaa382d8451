"""TLS versions, cipher suites and key exchanges of flags: accepted and refused as kube-apiserver does."""

from __future__ import annotations

import ssl

import pytest

from steersman.controlplane.options import OptionsError
from steersman.controlplane.tls_parameters import SUITE_NAMES, check_suites_of_http2, cipher_suites, curves, min_version


def test_every_suite_that_is_offered_can_be_used() -> None:
    for name in SUITE_NAMES:
        for each in cipher_suites((name,)):
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(each)


@pytest.mark.parametrize("name", ["FOO", "ECDHE-RSA-AES256-GCM-SHA384", "tls_rsa_with_aes_128_cbc_sha", ""])
def test_suites_have_the_names_of_iana(name: str) -> None:
    with pytest.raises(
        OptionsError, match=f"^Cipher suite {name} not supported or doesn't exist; known are TLS_AES_128"
    ):
        cipher_suites(("TLS_AES_128_GCM_SHA256", name))


def test_a_suite_that_openssl_does_not_have_is_no_mistake() -> None:
    with pytest.raises(OptionsError, match=r"is not supported: OpenSSL does not have it$"):
        cipher_suites(("TLS_RSA_WITH_RC4_128_SHA",))


def test_an_insecure_suite_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert cipher_suites(("TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")) == [
        "AES128-SHA",
        "ECDHE-RSA-AES128-GCM-SHA256",
    ]
    assert [each.getMessage() for each in caplog.records] == [
        "Use of insecure cipher 'TLS_RSA_WITH_AES_128_CBC_SHA' detected."
    ]


def test_http2_needs_a_suite_that_all_its_clients_have() -> None:
    check_suites_of_http2(())
    check_suites_of_http2(("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",))
    with pytest.raises(OptionsError, match="is missing an HTTP/2-required AES_128_GCM_SHA256 cipher"):
        check_suites_of_http2(("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",))


def test_versions_before_1_2_are_not_spoken() -> None:
    assert min_version("") == min_version("VersionTLS12") == ssl.TLSVersion.TLSv1_2
    assert min_version("VersionTLS13") == ssl.TLSVersion.TLSv1_3
    with pytest.raises(OptionsError, match=r"TLS 1\.2 is the oldest"):
        min_version("VersionTLS11")
    with pytest.raises(
        OptionsError,
        match=r'^unknown tls version "TLS1\.3"; known are VersionTLS12, VersionTLS13$',
    ):
        min_version("TLS1.3")


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ((0,), "curve preference 0 is out of range (must be 1-65535)"),
        ((65536,), "curve preference 65536 is out of range (must be 1-65535)"),
        ((23, 23), "duplicate curve preference 23"),
        ((30,), "curve preference 30 is not supported by the current Go version"),
    ],
)
def test_curves_are_refused_in_upstreams_words(numbers: tuple[int, ...], told: str) -> None:
    with pytest.raises(OptionsError) as caught:
        curves(numbers)
    assert str(caught.value) == told


def test_the_order_of_curves_is_gos() -> None:
    assert curves((25, 23, 29, 4588)) == ("X25519MLKEM768", "X25519", "P-256", "P-521")
