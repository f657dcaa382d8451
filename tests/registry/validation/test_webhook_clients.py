"""Validation of webhook client configurations, with upstream's texts."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from steersman.machinery.errors.field import Path
from steersman.registry.validation.webhook_clients import (
    validate_ca_bundle,
    validate_webhook_service,
    validate_webhook_url,
)

HERE = Path("url")
_FORM = "; desired format: https://host[/path]"


@pytest.mark.parametrize(
    ("url", "errors"),
    [
        ("https://example.com", []),
        ("https://example.com:8443/a/b", []),
        ("https://[::1]:8443", []),
        (
            "",
            [
                f"url: Invalid value: \"\": 'https' is the only allowed URL scheme{_FORM}",
                f'url: Invalid value: "": host must be specified{_FORM}',
            ],
        ),
        ("https:opaque", [f'url: Invalid value: "": host must be specified{_FORM}']),
        ("ftp://h", [f"url: Invalid value: \"ftp\": 'https' is the only allowed URL scheme{_FORM}"]),
        ("https://a%20b:c%21@h", ['url: Invalid value: "a%20b:c%21": user information is not permitted in the URL']),
        ("https://u@h", ['url: Invalid value: "u": user information is not permitted in the URL']),
        ("https://h#a%20b", ['url: Invalid value: "a b": fragments are not permitted in the URL']),
        ("https://h?a=b%20c", ['url: Invalid value: "a=b%20c": query parameters are not permitted in the URL']),
        (
            "https://h/%zz",
            [f'url: Required value: url must be a valid URL: parse "https://h/%zz": invalid URL escape "%zz"{_FORM}'],
        ),
    ],
)
def test_a_url_is_judged(url: str, errors: list[str]) -> None:
    assert [str(error) for error in validate_webhook_url(url, HERE)] == errors


def test_another_scheme_may_do() -> None:
    assert not list(validate_webhook_url("http://h", HERE, https=False))


@pytest.mark.parametrize(
    ("path", "errors"),
    [
        (None, []),
        ("", []),
        ("/", []),
        ("/a/b.c", []),
        ("/a/", []),
        ("//", ['url.path: Invalid value: "//": segment[0] may not be empty']),
        ("/a//b", ['url.path: Invalid value: "/a//b": segment[1] may not be empty']),
        ("ab", ["url.path: Invalid value: \"ab\": must start with a '/'"]),
    ],
)
def test_the_path_of_a_service_is_judged(path: str | None, errors: list[str]) -> None:
    assert [str(error) for error in validate_webhook_service("ns", "name", path, 443, HERE)] == errors


def test_a_bundle_of_certificates_is_judged() -> None:
    key = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    broken = b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
    for bundle, told in (
        (b"abc", "unable to parse bytes as PEM block"),
        (key, "no valid certificate authority data seen"),
        (key + b"more", "unable to parse bytes as PEM block"),
        (broken, "failed to parse certificate: x509: malformed certificate"),
    ):
        (error,) = validate_ca_bundle(bundle, HERE)
        assert error.detail == f"unable to load root certificates: {told}"
