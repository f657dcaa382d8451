"""TLS with aggregated servers."""

from __future__ import annotations

import os
import shutil
import ssl
from pathlib import Path

import pytest

from steersman.aggregator.client_identity import BackendTLSError, ClientIdentity
from steersman.server.certificates import CertificateFiles
from steersman.work import followed_files

HEADERS = b"-----BEGIN CERTIFICATE-----\nA: b\n\nbm8=\n-----END CERTIFICATE-----\n"


def test_contexts_are_made_once(files: CertificateFiles) -> None:
    identity = ClientIdentity()
    bundle = files.ca.read_bytes()
    context = identity.tls(bundle, insecure=False)
    assert context is identity.tls(bundle, insecure=False)
    assert context is not identity.tls(bundle, insecure=True)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert identity.tls(b"", insecure=True).verify_mode == ssl.CERT_NONE


@pytest.mark.parametrize(
    ("bundle", "text"),
    [
        (b"no", "unable to parse bytes as PEM block"),
        (HEADERS, "no valid certificate authority data seen"),
        (HEADERS.replace(b"A: b\n\n", b""), "failed to parse certificate: x509: malformed certificate"),
    ],
)
def test_authorities_that_cannot_be_read_are_told_of(bundle: bytes, text: str) -> None:
    with pytest.raises(BackendTLSError, match=text):
        ClientIdentity().tls(bundle, insecure=False)


def test_one_good_authority_is_enough(files: CertificateFiles) -> None:
    assert ClientIdentity().tls(HEADERS + files.ca.read_bytes(), insecure=False).get_ca_certs()


def test_a_key_that_is_no_file_any_more_takes_no_time_and_is_told_of_once(
    files: CertificateFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(followed_files, "CHECK_EVERY", 0.0)
    key = tmp_path / "k"
    shutil.copy(files.admin_key, key)
    identity = ClientIdentity(str(files.admin), str(key))
    before = identity.tls(b"", insecure=True)
    key.unlink()
    os.mkfifo(key)
    assert all(identity.tls(b"", insecure=True) is before for _ in range(3))
    assert len(caplog.records) == 1


def test_a_certificate_that_has_changed_is_shown_from_then_on(
    files: CertificateFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_files, "CHECK_EVERY", 0.0)
    cert, key = tmp_path / "c", tmp_path / "k"
    shutil.copy(files.admin, cert)
    shutil.copy(files.admin_key, key)
    identity = ClientIdentity(str(cert), str(key))
    before = identity.tls(b"", insecure=True)
    assert identity.tls(b"", insecure=True) is before
    cert.write_text("no certificate")
    assert identity.tls(b"", insecure=True) is before
    shutil.copy(files.server, cert)
    shutil.copy(files.server_key, key)
    os.utime(key, (1, 1))
    assert identity.tls(b"", insecure=True) is not before
