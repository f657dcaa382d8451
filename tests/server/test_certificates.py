"""The server's own certificates: good for TLS, kept, renewed in time, private."""

import base64
import json
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from steersman.authentication.client_certificate import ClientCertificateAuthenticator
from steersman.authentication.interface import Credentials
from steersman.server.certificates import admin_kubeconfig, ensure_certificates

NOW = datetime.now(UTC)


def contents(files):
    return {path.name: path.read_bytes() for path in files.folder.iterdir()}


def handshake(files, host, *, client=True):
    """Runs TLS between two contexts in memory; returns the certificate the server saw. Raises ssl.SSLError."""
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
def made(tmp_path_factory):
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
def test_the_server_is_trusted_under_all_its_names(made, host):
    assert handshake(made, host, client=False) is None


def test_the_server_is_not_trusted_under_another_name(made):
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(made, "elsewhere.example.com")


def test_the_administrator_is_a_master(made):
    der = handshake(made, "localhost")
    user = ClientCertificateAuthenticator().authenticate(Credentials(client_certificate=der, certificate_verified=True))
    assert (user.name, user.groups) == ("kubernetes-admin", ("system:masters", "system:authenticated"))


def test_only_the_owner_reads_keys(made):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.folder.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == {"ca.key", "apiserver.key", "admin.key"}
    assert set(modes.values()) == {0o600, 0o644}


def test_the_kubeconfig_has_all_inside(made):
    config = json.loads(admin_kubeconfig("https://127.0.0.1:6443", made))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == made.ca.read_bytes()
    assert base64.b64decode(user["client-certificate-data"]) == made.admin.read_bytes()
    assert base64.b64decode(user["client-key-data"]) == made.admin_key.read_bytes()
    [context] = config["contexts"]
    assert config["current-context"] == context["name"]
    assert context["context"] == {"cluster": config["clusters"][0]["name"], "user": config["users"][0]["name"]}


def test_good_certificates_are_used_again(tmp_path):
    before = contents(ensure_certificates(tmp_path, ["a.example.com", "10.0.0.1"]))
    assert contents(ensure_certificates(tmp_path, ["10.0.0.1"], now=NOW + timedelta(days=300))) == before


@pytest.mark.parametrize(
    ("hosts", "later"),
    [(["10.0.0.2"], timedelta()), ([], timedelta(days=340))],
    ids=["another host", "soon to end"],
)
def test_certificates_are_renewed_by_the_same_authority(tmp_path, hosts, later):
    before = contents(ensure_certificates(tmp_path))
    files = ensure_certificates(tmp_path, hosts, now=NOW + later)
    after = contents(files)
    kept = {name for name in before if before[name] == after[name]}
    assert kept == {"ca.crt", "ca.key"}
    assert contents(ensure_certificates(tmp_path, hosts, now=NOW + later)) == after


@pytest.mark.parametrize("name", ["apiserver.key", "admin.crt", "certificates.json"])
@pytest.mark.parametrize("damage", [b"", None])
def test_lost_or_damaged_files_are_made_anew(tmp_path, name, damage):
    files = ensure_certificates(tmp_path)
    if damage is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(damage)
    ca = files.ca.read_bytes()
    handshake(ensure_certificates(tmp_path), "localhost")
    assert files.ca.read_bytes() == ca


@pytest.mark.parametrize("later", [timedelta(), timedelta(days=3600)], ids=["its key is lost", "it ends"])
def test_the_authority_is_made_anew_only_if_it_must(tmp_path, later):
    files = ensure_certificates(tmp_path)
    ca = files.ca.read_bytes()
    if not later:
        files.ca_key.unlink()
    ensure_certificates(tmp_path, now=NOW + later)
    assert files.ca.read_bytes() != ca
    if not later:
        handshake(files, "localhost")


def test_a_start_with_good_certificates_does_not_import_cryptography(tmp_path):
    ensure_certificates(tmp_path)
    code = (
        "import sys; from steersman.server.certificates import ensure_certificates as e;"
        f"e({str(tmp_path)!r}); sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
