"""Service account keys: on disk, in every supported format, and as published JSON Web Keys."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from steersman.authentication.service_account_keys import (
    KeyFileError,
    ServiceAccountKeys,
    default_jwks_uri,
    is_sound,
    make_signing_key,
)

RSA = rsa.generate_private_key(65537, 2048)
P256, P384, P521 = (ec.generate_private_key(curve) for curve in (ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()))


def private(key: Any, form: Any = PrivateFormat.PKCS8, encryption: Any = None) -> Any:
    return key.private_bytes(Encoding.PEM, form, encryption or NoEncryption())


def public(key: Any) -> Any:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "sa.key"
    first = ServiceAccountKeys.load_or_make(path)
    again = ServiceAccountKeys.load_or_make(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert first.signing.key_id == again.signing.key_id
    assert first.signing.algorithm == "RS256"
    assert os.listdir(path.parent) == ["sa.key"]


@pytest.mark.parametrize("key", [RSA, P256, P384, P521])
@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_tokens_signed_with_the_key_verify_with_the_published_set(key: Any, form: Any) -> None:
    keys = ServiceAccountKeys(private(key, form))
    published = json.loads(keys.jwks)
    [web_key] = published["keys"]
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert web_key["kid"] == base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")
    algorithm = keys.signing.algorithm
    header = {"alg": algorithm, "kid": keys.signing.key_id}
    signing = (RSAKey if key is RSA else ECKey).import_key(private(key))
    token = jwt.encode(header, {"sub": "x"}, signing, algorithms=[algorithm])
    decoded = jwt.decode(token, KeySet.import_key_set(published), algorithms=[algorithm])
    assert decoded.claims == {"sub": "x"}


def test_key_sets_have_the_members_and_order_of_the_reference() -> None:
    keys = ServiceAccountKeys(private(P256), [public(RSA), private(P256)])
    rsa_key, ec_key = json.loads(keys.jwks)["keys"]
    assert list(rsa_key) == ["use", "kty", "kid", "alg", "n", "e"]
    assert (rsa_key["use"], rsa_key["kty"], rsa_key["alg"], rsa_key["e"]) == ("sig", "RSA", "RS256", "AQAB")
    assert list(ec_key) == ["use", "kty", "kid", "crv", "alg", "x", "y"]
    assert (ec_key["crv"], ec_key["alg"]) == ("P-256", "ES256")


def test_coordinates_keep_their_leading_zeros() -> None:
    for _ in range(2000):
        key = ec.generate_private_key(ec.SECP256R1())
        if key.public_key().public_numbers().x >> 248 == 0:
            break
    else:
        pytest.fail("no key with a leading zero found")
    [web_key] = json.loads(ServiceAccountKeys(private(key)).jwks)["keys"]
    assert len(web_key["x"]) == 43


def test_only_the_given_verification_keys_verify() -> None:
    keys = ServiceAccountKeys(private(P256), [public(RSA) + b"between\n" + public(P384)])
    assert [each.algorithm for each in keys.verification_keys] == ["RS256", "ES384"]


def test_the_discovery_document_is_the_reference_s() -> None:
    keys = ServiceAccountKeys(private(P256), [private(P256), public(RSA)])
    issuer = "https://kubernetes.default.svc.cluster.local"
    assert keys.openid_configuration(issuer, default_jwks_uri("10.0.0.1:6443")) == (
        b'{"issuer":"https://kubernetes.default.svc.cluster.local","jwks_uri":"https://10.0.0.1:6443/openid/v1/jwks",'
        b'"response_types_supported":["id_token"],"subject_types_supported":["public"],'
        b'"id_token_signing_alg_values_supported":["ES256","RS256"]}'
    )


@pytest.mark.parametrize(
    ("issuer", "message"),
    [
        ("", "empty issuer URL"),
        ("http://a", "issuer URL must use https scheme, got: http://a"),
        ("https://a?b=c", "issuer URL may not include a query, got: https://a?b=c"),
        ("https://a#b", "issuer URL may not include a fragment, got: https://a#b"),
    ],
)
def test_issuers_openid_does_not_allow_have_no_document(issuer: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ServiceAccountKeys(make_signing_key()).openid_configuration(issuer, "https://a/openid/v1/jwks")


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"nonsense",
        public(P256),
        private(P256, encryption=BestAvailableEncryption(b"locked")),
        private(ed25519.Ed25519PrivateKey.generate()),
        private(ec.generate_private_key(ec.SECP256K1())),
    ],
)
def test_files_without_a_usable_key_are_refused_by_name(tmp_path: Path, pem: Any) -> None:
    path = tmp_path / "sa.key"
    path.write_bytes(pem)
    with pytest.raises(KeyFileError, match=r"sa\.key"):
        ServiceAccountKeys.load(path)


def test_files_with_an_ec_parameters_block_are_read(tmp_path: Path) -> None:
    path = tmp_path / "sa.key"
    path.write_bytes(b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + private(P256))
    other = tmp_path / "other.pub"
    other.write_bytes(public(RSA))
    keys = ServiceAccountKeys.load(path, [path, other])
    assert [each.algorithm for each in keys.verification_keys] == ["ES256", "RS256"]


def test_a_key_made_here_is_known_to_be_sound_without_cryptography(tmp_path: Path) -> None:
    path = tmp_path / "sa.key"
    ServiceAccountKeys.load_or_make(path)
    code = (
        "import sys; from steersman.authentication.service_account_keys import ServiceAccountKeys as K;"
        f"K.load_or_make({str(path)!r}); sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(st.data())
def test_a_key_with_any_byte_changed_or_cut_off_is_not_sound(data: Any) -> None:
    pem = private(RSA, PrivateFormat.TraditionalOpenSSL)
    assert is_sound(pem)
    der = base64.b64decode(b"".join(pem.splitlines()[1:-1]))
    at = data.draw(st.integers(0, len(der) - 1))
    changed = bytearray(der)
    changed[at] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(changed), der[:at]):
        body = base64.encodebytes(damaged)
        assert not is_sound(b"-----BEGIN RSA PRIVATE KEY-----\n" + body + b"-----END RSA PRIVATE KEY-----\n")
    assert not is_sound(pem[: data.draw(st.integers(0, len(pem) - 2))])


@pytest.mark.parametrize("damage", ["empty", "half", "public", "garbage"])
def test_a_damaged_key_is_refused_and_left_alone(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "sa.key"
    ServiceAccountKeys.load_or_make(path)
    pem = path.read_bytes()
    content = {"empty": b"", "half": pem[: len(pem) // 2], "public": public(RSA), "garbage": os.urandom(2000)}[damage]
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(KeyFileError, match=rf"{path}: .*put back a copy"):
            ServiceAccountKeys.load_or_make(path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["sa.key"]


@pytest.mark.parametrize("what", ["a folder", "a link to"])
def test_a_folder_or_a_dangling_link_in_place_of_the_key_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "sa.key"
    path.mkdir() if what == "a folder" else path.symlink_to("nowhere")
    with pytest.raises(OSError, match=rf"sa\.key is {what}"):
        ServiceAccountKeys.load_or_make(path)


def test_a_key_of_another_kind_put_there_is_used(tmp_path: Path) -> None:
    path = tmp_path / "sa.key"
    path.write_bytes(private(P256))
    path.chmod(0o600)
    assert ServiceAccountKeys.load_or_make(path).signing.algorithm == "ES256"


@pytest.mark.parametrize("load", [ServiceAccountKeys.load, ServiceAccountKeys.load_or_make])
def test_a_signing_key_that_others_can_read_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, load: Any
) -> None:
    path = tmp_path / "sa.key"
    path.write_bytes(private(P256))
    path.chmod(0o644)
    load(path)
    assert caplog.messages == [f"others can read {path} (mode 0644): chmod 600 {path}"]
