"""Whose certificates count, where TLS trusts more."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from steersman.authentication import authorities
from steersman.authentication.authorities import Authorities
from tests.authentication.certificates import root

ONE, OTHER = root("one"), root("other")


def der(pem: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.decode())


def test_every_certificate_of_every_file_counts(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(ONE + OTHER)
    (tmp_path / "b").write_bytes(root("third"))
    found = Authorities([str(tmp_path / "a"), str(tmp_path / "b")])
    assert found.vouch_for([b"leaf", der(OTHER)])
    assert not found.vouch_for([b"leaf"])
    assert not found.vouch_for([])


def test_files_that_change_count_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorities, "_CHECK_EVERY", 0.0)
    path = tmp_path / "a"
    path.write_bytes(ONE)
    found = Authorities([str(path)])
    path.write_bytes(OTHER + OTHER)
    assert not found.vouch_for([der(ONE)])
    assert found.vouch_for([der(OTHER)])
    path.write_text("damaged")
    assert found.vouch_for([der(OTHER)])
    path.unlink()
    assert found.vouch_for([der(OTHER)])


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
