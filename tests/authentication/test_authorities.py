"""Verification of certificates against CAs, stricter than in TLS."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman.authentication.authorities import Authorities
from steersman.work import followed_files
from tests.authentication.certificates import CA_KEY, KEY, Clock, certificate, name, root

ONE, OTHER = root("one"), root("other")


def der(pem: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.decode())


JANE = name((NameOID.COMMON_NAME, "jane"))
BELOW_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())


def leaf(issuer: str, signer: ec.EllipticCurvePrivateKey = CA_KEY) -> bytes:
    return bytes(certificate(JANE, issuer=issuer, signer=signer))


def test_every_certificate_of_every_file_counts(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(ONE + OTHER)
    (tmp_path / "b").write_bytes(root("third"))
    authorities = Authorities([str(tmp_path / "a"), str(tmp_path / "b")], clock=Clock())
    assert all(authorities.verify([leaf(each)]) for each in ("one", "other", "third"))
    assert not authorities.verify([leaf("nobody")])
    assert not authorities.verify([leaf("one", OTHER_KEY)])  # of one who has the same name
    assert not authorities.verify([b"damaged"])
    assert not authorities.verify([])


def test_a_chain_leads_over_what_the_client_sends_with_its_certificate(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(ONE)
    authorities = Authorities([str(tmp_path / "a")], clock=Clock())
    below = der(root("below", BELOW_KEY, issuer="one", signer=CA_KEY))
    for_servers = der(root("servers", BELOW_KEY, issuer="one", signer=CA_KEY, usage=ExtendedKeyUsageOID.SERVER_AUTH))
    assert authorities.verify([leaf("below", BELOW_KEY), below])
    assert not authorities.verify([leaf("below", BELOW_KEY)])
    assert not authorities.verify([leaf("servers", BELOW_KEY), for_servers])
    assert not authorities.verify(
        [certificate(JANE, issuer="jane", signer=KEY), leaf("one")]
    )  # no authority signed that


def test_an_authority_below_another_counts_by_itself(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(root("below", BELOW_KEY, issuer="one", signer=CA_KEY))
    authorities = Authorities([str(tmp_path / "a")], clock=Clock())
    assert authorities.verify([leaf("below", BELOW_KEY)])
    assert not authorities.verify([leaf("one"), der(ONE)])


def test_chains_count_in_their_time(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(ONE)
    clock = Clock()
    authorities = Authorities([str(tmp_path / "a")], clock=clock)
    assert authorities.verify([leaf("one")])
    clock.now += timedelta(days=20)
    assert not authorities.verify([leaf("one")])


def test_a_clock_that_is_set_back_lets_no_chain_count_for_longer(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(ONE)
    clock = Clock()
    authorities = Authorities([str(tmp_path / "a")], clock=clock)
    assert authorities.verify([leaf("one")])
    clock.now -= timedelta(days=20)
    assert not authorities.verify([leaf("one")])


def test_what_counts_exactly_vouches_for_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(ONE)
    (tmp_path / "admin").write_bytes(ssl.DER_cert_to_PEM_cert(leaf("nobody")).encode())
    authorities = Authorities([str(tmp_path / "a")], [str(tmp_path / "admin")], clock=Clock())
    exact = der((tmp_path / "admin").read_bytes())
    assert authorities.verify([exact])
    assert not authorities.verify([leaf("nobody")])


def test_files_that_change_count_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_files, "CHECK_EVERY", 0.0)
    path = tmp_path / "a"
    path.write_bytes(ONE)
    authorities = Authorities([str(path)], clock=Clock())
    assert authorities.verify([leaf("one")])
    path.write_bytes(OTHER + OTHER)
    assert not authorities.verify([leaf("one")])
    assert authorities.verify([leaf("other")])
    path.write_text("damaged")
    assert authorities.verify([leaf("other")])
    path.unlink()
    assert authorities.verify([leaf("other")])


@pytest.mark.parametrize("put", [Path.mkdir, os.mkfifo, Path.touch, lambda path: path.symlink_to(path)])
def test_a_file_that_cannot_be_used_any_more_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, put: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(followed_files, "CHECK_EVERY", 0.0)
    path = tmp_path / "a"
    path.write_bytes(ONE)
    authorities = Authorities([str(path)], clock=Clock())
    path.unlink()
    put(path)
    assert all(authorities.verify([leaf("one")]) for _ in range(3))
    assert len(caplog.records) == 1


def test_what_two_have_in_common(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(ONE + OTHER)
    (tmp_path / "b").write_bytes(OTHER)
    (tmp_path / "c").write_bytes(ONE)
    a, b, c = (Authorities([str(tmp_path / each)]) for each in "abc")
    assert a.share(b)
    assert not b.share(c)


def test_a_file_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Authorities([str(tmp_path / "none")])
