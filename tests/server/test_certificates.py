"""The server's own certificates: valid for TLS, persistent, renewed in time, private."""

from __future__ import annotations

import base64
import errno
import json
import os
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from steersman.authentication.client_certificate import ClientCertificateAuthenticator
from steersman.authentication.interface import Credentials
from steersman.server.certificates import CertificateError, admin_kubeconfig, ensure_certificates

NOW = datetime.now(UTC)


def contents(files: Any) -> Any:
    return {path.name: path.read_bytes() for path in files.folder.iterdir()}


def handshake(files: Any, host: Any, *, client: Any = True) -> Any:
    """Perform TLS between two contexts in memory; return the certificate that the server saw. Raises ssl.SSLError."""
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files.ca)
    serving.load_cert_chain(files.server, files.server_key)
    serving.verify_mode = ssl.CERT_OPTIONAL
    calling = ssl.create_default_context(cafile=files.ca)
    calling.verify_flags |= ssl.VERIFY_X509_STRICT
    if client:
        calling.load_cert_chain(files.admin, files.admin_key)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [calling.wrap_bio(back, there, server_hostname=host), serving.wrap_bio(there, back, server_side=True)]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends[1].getpeercert(binary_form=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return ensure_certificates(tmp_path_factory.mktemp("pki"), ["10.96.0.1", "Api.Example.COM", "[fd00::0001]"])


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes.default.svc.cluster.local",
        "10.96.0.1",
        "api.example.com",
        "fd00::1",
    ],
)
def test_the_server_is_trusted_under_all_its_names(made: Any, host: str) -> None:
    assert handshake(made, host, client=False) is None


def test_the_server_is_not_trusted_under_another_name(made: Any) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(made, "elsewhere.example.com")


def test_the_administrator_is_a_master(made: Any) -> None:
    der = handshake(made, "localhost")
    user = ClientCertificateAuthenticator().authenticate(Credentials(client_certificate=der, certificate_verified=True))
    assert user is not None
    assert (user.name, user.groups) == ("kubernetes-admin", ("system:masters", "system:authenticated"))


def test_only_the_owner_reads_keys(made: Any) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.folder.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == {"ca.key", "apiserver.key", "admin.key"}
    assert set(modes.values()) == {0o600, 0o644}


def test_the_kubeconfig_has_all_inside(made: Any) -> None:
    config = json.loads(admin_kubeconfig("https://127.0.0.1:6443", made))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == made.ca.read_bytes()
    assert base64.b64decode(user["client-certificate-data"]) == made.admin.read_bytes()
    assert base64.b64decode(user["client-key-data"]) == made.admin_key.read_bytes()
    [context] = config["contexts"]
    assert config["current-context"] == context["name"]
    assert context["context"] == {"cluster": config["clusters"][0]["name"], "user": config["users"][0]["name"]}


def test_good_certificates_are_used_again(tmp_path: Path) -> None:
    before = contents(ensure_certificates(tmp_path, ["a.example.com", "10.0.0.1"]))
    assert contents(ensure_certificates(tmp_path, ["10.0.0.1"], now=NOW + timedelta(days=300))) == before


@pytest.mark.parametrize(
    ("hosts", "later"),
    [(["10.0.0.2"], timedelta()), ([], timedelta(days=340))],
    ids=["another host", "soon to end"],
)
def test_certificates_are_renewed_by_the_same_authority(tmp_path: Path, hosts: list[Any], later: Any) -> None:
    before = contents(ensure_certificates(tmp_path))
    files = ensure_certificates(tmp_path, hosts, now=NOW + later)
    after = contents(files)
    kept = {name for name in before if before[name] == after[name]}
    assert kept == {"ca.crt", "ca.key"}
    assert contents(ensure_certificates(tmp_path, hosts, now=NOW + later)) == after


@pytest.mark.parametrize("name", ["apiserver.key", "admin.crt", "certificates.json"])
@pytest.mark.parametrize("damage", [b"", None])
def test_lost_or_damaged_files_are_made_anew(tmp_path: Path, name: str, damage: bytes | None) -> None:
    files = ensure_certificates(tmp_path)
    if damage is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(damage)
    ca = files.ca.read_bytes()
    handshake(ensure_certificates(tmp_path), "localhost")
    assert files.ca.read_bytes() == ca


def test_an_authority_that_ends_is_made_anew_and_the_old_one_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = ensure_certificates(tmp_path)
    old = contents(files)
    ensure_certificates(tmp_path, now=NOW + timedelta(days=3600))
    new = contents(files)
    assert new["ca.crt"] != old["ca.crt"]
    assert (new["ca.crt.1"], new["ca.key.1"]) == (old["ca.crt"], old["ca.key"])
    assert "expires on" in caplog.text
    assert "ca.key.1" in caplog.text


def test_a_key_without_its_certificate_gets_one_that_the_old_one_vouches_for(tmp_path: Path) -> None:
    files = ensure_certificates(tmp_path)
    old = files.ca.read_bytes()
    files.ca.unlink()
    ensure_certificates(tmp_path)
    handshake(files, "localhost")
    files.ca.write_bytes(old)
    handshake(files, "localhost")


OTHER_KEY = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
)


@pytest.mark.parametrize("renewal", [[], ["another.example.com"]], ids=["same hosts", "another host"])
@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("ca.key", None, "is there without"),
        ("ca.key", b"", "ca.key holds no valid key"),
        ("ca.key", b"-----BEGIN EC PRIVATE KEY-----\nMHcC", "ca.key holds no valid key"),
        ("ca.key", OTHER_KEY, "ca.key is not the key of"),
        ("ca.crt", b"", "ca.crt holds no valid certificate"),
        (
            "ca.crt",
            b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
            "ca.crt holds no valid certificate",
        ),
    ],
)
def test_a_damaged_authority_is_refused_and_nothing_is_changed(
    tmp_path: Path, name: str, damage: Any, message: str, renewal: list[Any]
) -> None:
    files = ensure_certificates(tmp_path)
    if damage is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(damage)
    before = contents(files)
    for _ in range(2):
        with pytest.raises(CertificateError, match=message):
            ensure_certificates(tmp_path, renewal)
    assert contents(files) == before


@pytest.mark.parametrize("name", ["ca.key", "ca.crt", "apiserver.key", "certificates.json"])
@pytest.mark.parametrize("what", ["a folder", "a link to"])
def test_a_folder_or_a_dangling_link_in_place_of_a_file_is_refused(tmp_path: Path, name: str, what: str) -> None:
    ensure_certificates(tmp_path)
    (tmp_path / name).unlink()
    if what == "a folder":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match=f"{name} is {what}"):
        ensure_certificates(tmp_path)


@pytest.mark.parametrize("damage", [b"half a certif", OTHER_KEY])
def test_a_file_that_was_changed_is_kept_under_another_name(
    tmp_path: Path, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    files = ensure_certificates(tmp_path)
    for _ in range(2):
        files.server_key.write_bytes(damage)
        ensure_certificates(tmp_path)
    assert (tmp_path / "apiserver.key.1").read_bytes() == (tmp_path / "apiserver.key.2").read_bytes() == damage
    assert "apiserver.key was modified" in caplog.text
    handshake(files, "localhost")


@pytest.mark.parametrize("damage", [b"{", b"", b'{"\xff":1}', None])
def test_where_only_the_note_is_lost_nothing_is_set_aside(
    tmp_path: Path, damage: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    files = ensure_certificates(tmp_path)
    names = set(contents(files))
    files.note.unlink()
    if damage is not None:
        files.note.write_bytes(damage)
    ensure_certificates(tmp_path)
    assert set(contents(files)) == names
    assert not caplog.messages
    handshake(files, "localhost")


def test_where_the_note_is_lost_what_the_authority_did_not_issue_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = ensure_certificates(tmp_path)
    files.note.write_bytes(b"{")
    files.server_key.write_bytes(OTHER_KEY)
    ensure_certificates(tmp_path)
    assert (tmp_path / "apiserver.key.1").read_bytes() == OTHER_KEY
    assert not (tmp_path / "admin.key.1").exists()
    handshake(files, "localhost")


def test_keys_that_others_can_read_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = ensure_certificates(tmp_path)
    files.ca_key.chmod(0o640)
    files.admin_key.chmod(0o666)
    ensure_certificates(tmp_path)
    assert sorted(caplog.messages) == [
        f"others can change {files.admin_key} (mode 0666): chmod 600 {files.admin_key}",
        f"others can read {files.ca_key} (mode 0640): chmod 600 {files.ca_key}",
    ]


def test_a_full_disk_leaves_the_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ensure_certificates(tmp_path)
    before = contents(files)

    def full(descriptor: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        ensure_certificates(tmp_path, ["another.example.com"])
    assert contents(files) == before


def test_a_start_with_good_certificates_does_not_import_cryptography(tmp_path: Path) -> None:
    ensure_certificates(tmp_path)
    code = (
        "import sys; from steersman.server.certificates import ensure_certificates as e;"
        f"e({str(tmp_path)!r}); sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
