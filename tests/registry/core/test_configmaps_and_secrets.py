"""ConfigMaps and Secrets: keys, sizes, types, and the effect of `immutable`."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman.registry.core.configmaps import CONFIG_MAPS
from steersman.registry.core.secrets import SECRETS
from steersman.registry.core.tls_key_pair import key_pair_error


def named(name: str, **members: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **members}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def test_bad_and_repeated_keys_are_refused(cluster: Callable[..., Any]) -> None:
    c = await cluster(CONFIG_MAPS)
    bad = named("a", data={"a b": "1", "x": "1"}, binaryData={"x": "eA=="})
    faults = await c.faults(c.create("configmaps", bad))
    assert faults[0].startswith('data[a b]: Invalid value: "a b": a valid config key must consist of')
    assert faults[1:] == ['data[x]: Invalid value: "x": duplicate of key present in binaryData']


async def test_more_than_a_mebibyte_is_refused(cluster: Callable[..., Any]) -> None:
    c = await cluster(CONFIG_MAPS, SECRETS)
    await c.create("configmaps", named("fits", data={"a": "x" * (1 << 20)}))
    faults = await c.faults(c.create("configmaps", named("a", data={"a": "x" * (1 << 20), "b": "y"})))
    assert faults == ["[]: Too long: may not be more than 1048576 bytes"]
    faults = await c.faults(c.create("secrets", named("a", stringData={"a": "x" * ((1 << 20) + 1)})))
    assert faults == ["data: Too long: may not be more than 1048576 bytes"]


async def test_immutable_freezes_data_and_itself(cluster: Callable[..., Any]) -> None:
    c = await cluster(CONFIG_MAPS, SECRETS)
    await c.create("configmaps", named("a", immutable=True, data={"a": "1"}))
    detail = "Forbidden: field is immutable when `immutable` is set"
    changed = named("a", data={"a": "2"}, binaryData={"b": "eA=="})
    assert await c.faults(c.update("configmaps", changed)) == [
        f"immutable: {detail}",
        f"data: {detail}",
        f"binaryData: {detail}",
    ]
    await c.create("secrets", named("s", immutable=True, stringData={"a": "1"}))
    assert await c.faults(c.update("secrets", named("s", immutable=True))) == [f"data: {detail}"]


async def test_string_data_wins_over_data_and_is_not_kept(cluster: Callable[..., Any]) -> None:
    c = await cluster(SECRETS)
    made = await c.create("secrets", named("a", data={"k": encoded("old")}, stringData={"k": "new"}))
    assert (made["type"], made["data"], "stringData" in made) == ("Opaque", {"k": encoded("new")}, False)


@pytest.mark.parametrize(
    ("kind", "data", "faults"),
    [
        ("kubernetes.io/tls", {}, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        ("kubernetes.io/basic-auth", {}, ["data[username]: Required value", "data[password]: Required value"]),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": ""}, ["data[ssh-privatekey]: Required value"]),
        ("kubernetes.io/dockercfg", {}, ["data[.dockercfg]: Required value"]),
        (
            "kubernetes.io/dockerconfigjson",
            {".dockerconfigjson": "[]"},
            [
                'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
                "json: cannot unmarshal array into Go value of type map[string]interface {}"
            ],
        ),
        (
            "kubernetes.io/dockercfg",
            {".dockercfg": ""},
            ['data[.dockercfg]: Invalid value: "<secret contents redacted>": unexpected end of JSON input'],
        ),
        (
            "kubernetes.io/service-account-token",
            {},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
    ],
)
async def test_type_demands_its_keys(
    cluster: Callable[..., Any], kind: str, data: dict[str, str], faults: list[str]
) -> None:
    c = await cluster(SECRETS)
    assert await c.faults(c.create("secrets", named("a", type=kind, stringData=data))) == faults


async def test_type_of_a_secret_may_not_change_but_be_left_out(cluster: Callable[..., Any]) -> None:
    c = await cluster(SECRETS)
    await c.create("secrets", named("a", type="example.com/x"))
    assert await c.faults(c.update("secrets", named("a", type="example.com/y"))) == [
        'type: Invalid value: "example.com/y": field is immutable'
    ]


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form)


def _certificate(key: ec.EllipticCurvePrivateKey) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start + datetime.timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def test_key_pair_is_told_from_what_is_none() -> None:
    key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(key)
    assert key_pair_error(certificate, _pem(key)) == ""
    assert key_pair_error(certificate, _pem(other)) == "tls: private key does not match public key"
    assert key_pair_error(b"x", _pem(key)) == "tls: failed to find any PEM data in certificate input"
    assert key_pair_error(certificate, b"x") == "tls: failed to find any PEM data in key input"
    assert "PEM inputs may have been switched" in key_pair_error(_pem(key), certificate)
    assert key_pair_error(certificate, certificate).startswith("tls: found a certificate rather than a key")
