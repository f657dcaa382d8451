"""The `kube-apiserver` of `steersman envtest`: command line, data, clients, and end."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from steersman.cli.envtest import kube_apiserver
from steersman.cli.envtest.claim import claim
from steersman.cli.flags import NOT_SUPPORTED
from steersman.controlplane.options import FLAGS, OptionsError
from tests.cli.envtest.programs import CONFIG_MAPS, Running, free_port


@pytest.fixture
def start(programs: Path, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def make(*flags: str) -> Running:
        made.append(Running(programs / "kube-apiserver", tmp_path / "kube-apiserver", *flags))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.mark.slow
def test_its_data_is_in_the_folder_of_its_etcd_and_there_again_after_both_have_ended(
    start: Callable[..., Running], etcd: Any, make_etcd: Callable[..., Any]
) -> None:
    server = start(f"--etcd-servers={etcd.url}")
    server.wait_ready()
    server.request("POST", CONFIG_MAPS, {"metadata": {"name": "kept"}})
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0
    etcd.end()
    again = make_etcd(folder=etcd.folder)
    server = start("--etcd-servers", again.url)
    server.wait_ready()
    assert json.loads(server.request("GET", f"{CONFIG_MAPS}/kept"))["metadata"]["name"] == "kept"


@pytest.mark.slow
def test_a_second_one_on_the_same_etcd_is_refused(start: Callable[..., Running], etcd: Any) -> None:
    start(f"--etcd-servers={etcd.url}").wait_ready()
    refused = start(f"--etcd-servers={etcd.url}").refusal()
    assert (
        f"another kube-apiserver uses the etcd at {etcd.url}; each kube-apiserver needs an etcd of its own" in refused
    )


def test_it_ends_with_its_etcd(start: Callable[..., Running], etcd: Any) -> None:
    server = start(f"--etcd-servers={etcd.url}")
    server.wait_ready()
    etcd.end()
    assert server.process.wait(30) == 0
    assert server.process.stderr is not None
    assert "the etcd has ended, and this server with it" in server.process.stderr.read()


@pytest.mark.slow
def test_the_certificates_of_its_folder_are_served_and_kept(
    start: Callable[..., Running], etcd: Any, make_etcd: Callable[..., Any], tmp_path: Path
) -> None:
    server = start(f"--etcd-servers={etcd.url}")
    server.wait_ready()
    made = (server.certificates / "apiserver.crt").read_bytes()
    etcd.end()
    server.process.wait(30)
    server = start(f"--etcd-servers={make_etcd(folder=tmp_path / 'other').url}")
    server.wait_ready()
    assert (server.certificates / "apiserver.crt").read_bytes() == made


def test_a_real_etcd_is_refused() -> None:
    class Etcd(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Etcd) as server:
        answering = Thread(target=server.handle_request)
        answering.start()
        with pytest.raises(OptionsError, match="is not the etcd of `steersman envtest`, the only one"):
            claim(f"http://127.0.0.1:{server.server_port}")
        answering.join()


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ("", "--etcd-servers must be specified"),
        ("http://127.0.0.1:1,http://127.0.0.1:2", "has several addresses; only one is supported"),
        ("https://127.0.0.1:2379", "this kube-apiserver supports only the etcd"),
        ("http://127.0.0.1:port", "is not a URL"),
    ],
)
def test_what_is_no_etcd_of_ours_is_told(servers: str, told: str) -> None:
    with pytest.raises(OptionsError, match=re.escape(told)):
        claim(servers)


def test_an_etcd_that_never_listens_is_not_waited_for_forever() -> None:
    with pytest.raises(OptionsError, match="cannot connect to"):
        claim(f"http://127.0.0.1:{free_port()}", longest_wait=0.05)


def test_flags_that_envtest_and_its_like_pass_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    options, own = kube_apiserver.read(
        [
            "",
            "--advertise-address=127.0.0.1",
            "--insecure-port=0",
            "--insecure-bind-address",
            "127.0.0.1",
            "--cert-dir",
            "a",
            "--secure-port",
            "6444",
            "--etcd-servers",
            "http://0.0.0.0:1",
            "--allow-privileged",
            "--service-account-issuer",
            "https://localhost",
            "--service-account-issuer",
            "/a/apiserver.crt",
            f"--service-account-signing-key-file={file}",
            f"--service-account-signing-key-file={file}",
            "--watch-cache",
            "--enable-priority-and-fairness=false",
            "--vmodule",
            "a=3",
        ]
    )
    assert own == {"cert-dir": "a", "etcd-servers": "http://0.0.0.0:1"}
    assert (options.secure_port, options.allow_privileged, options.advertise_address) == (6444, True, "127.0.0.1")
    assert options.service_account_issuer == ("https://localhost", "/a/apiserver.crt")


def _self_signed(folder: Path, name: str, subject: list[tuple[Any, str]], hosts: list[x509.GeneralName]) -> None:
    """Create an RSA key and a self-signed certificate without usages, as tools in Java do."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    named = x509.Name([x509.NameAttribute(kind, value) for kind, value in subject])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(named)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=365))
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    (folder / f"{name}.crt").write_bytes(builder.sign(key, SHA256()).public_bytes(Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )


@pytest.mark.slow
def test_the_command_line_and_certificates_of_tools_in_java_are_taken(
    programs: Path, make_etcd: Callable[..., Any], tmp_path: Path
) -> None:
    """jenvtest and fabric8's kube-api-test start both programs at once, the server before etcd listens."""
    home = tmp_path / "home"
    home.mkdir()
    _self_signed(home, "apiserver", [(NameOID.COMMON_NAME, "example.org")], [x509.IPAddress(ip_address("127.0.0.1"))])
    user = [(NameOID.ORGANIZATION_NAME, "system:masters"), (NameOID.COMMON_NAME, "jenvtest")]
    _self_signed(home, "client", user, [])
    key, port = str(home / "apiserver.key"), free_port()
    etcd = make_etcd(
        "-wal-dir",
        str(tmp_path / "wal"),
        "--initial-cluster",
        "default=http://localhost:1",
        "--initial-advertise-peer-urls",
        "http://localhost:1",
    )
    server = subprocess.Popen(
        [
            programs / "kube-apiserver",
            "--cert-dir",
            home,
            "--secure-port",
            str(port),
            "--etcd-servers",
            etcd.url.replace("127.0.0.1", "0.0.0.0"),
            "--authorization-mode",
            "RBAC",
            "--service-account-issuer",
            "https://localhost",
            "--service-account-signing-key-file",
            key,
            "--service-account-signing-key-file",
            key,
            "--service-account-key-file",
            key,
            "--service-account-issuer",
            str(home / "apiserver.crt"),
            "--disable-admission-plugins",
            "ServiceAccount",
            "--client-ca-file",
            str(home / "client.crt"),
            "--service-cluster-ip-range",
            "10.0.0.0/24",
            "--allow-privileged",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("ready ")
        unverified = ssl.create_default_context()
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=unverified, timeout=30) as answer:
            assert answer.status == 200  # asked for without a certificate, and without a look at the server's
        with urllib.request.urlopen(f"{etcd.url}/health", timeout=30) as answer:
            assert answer.status == 200
        context = ssl.create_default_context(cafile=str(home / "apiserver.crt"))
        context.load_cert_chain(home / "client.crt", home / "client.key")
        with urllib.request.urlopen(
            f"https://127.0.0.1:{port}/api/v1/namespaces/default", context=context, timeout=30
        ) as answer:
            assert json.load(answer)["metadata"]["name"] == "default"
    finally:
        server.kill()
        server.communicate()


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("--data-dir=a", "unknown flag: --data-dir"),
        ("--unsafe-no-fsync", "unknown flag: --unsafe-no-fsync"),
        ("--debug-socket-path=a", "not supported yet: --debug-socket-path"),
        ("--insecure-port=8080", "--insecure-port: kube-apiserver serves only TLS"),
        ("--secure-prot=1", "unknown flag: --secure-prot, did you mean --secure-port?"),
        ("--secure-port", "--secure-port needs a value"),
        ("stray", "unexpected argument 'stray'"),
    ],
)
def test_other_flags_end_the_start(argument: str, told: str) -> None:
    with pytest.raises(OptionsError, match=re.escape(told)):
        kube_apiserver.read([argument])


def test_every_flag_that_is_named_is_kube_apiservers() -> None:
    upstream = (FLAGS.keys() | NOT_SUPPORTED) - kube_apiserver.NOT_UPSTREAM
    assert upstream >= kube_apiserver.WITHOUT_EFFECT
    assert upstream >= kube_apiserver.OWN.keys()
    taken_elsewhere = kube_apiserver.WITHOUT_EFFECT & {*FLAGS, *kube_apiserver.OWN}
    about_etcd = {"storage-backend", "storage-initialization-timeout", "lease-reuse-duration-seconds"}  # there is none
    one_value = {"delete-collection-workers", "enable-garbage-collector", "enable-logs-handler", "watch-cache"}
    assert {name for name in taken_elsewhere if not name.startswith("etcd-")} == about_etcd | one_value


@pytest.mark.parametrize("arguments", [["--help"], ["--v=1", "--help"]])
def test_its_help_names_what_it_takes(programs: Path, arguments: list[str]) -> None:
    said = subprocess.run(
        [programs / "kube-apiserver", *arguments], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    named = set(re.findall(r"(?m)^\s*--([a-z0-9-]+)\b", said))
    assert named == {*FLAGS, *kube_apiserver.OWN, *kube_apiserver.WITHOUT_EFFECT} - kube_apiserver.NOT_UPSTREAM
    assert "insecure-port" not in named  # else envtest passes it


@pytest.mark.parametrize("arguments", [["--version"], ["--v=1", "--version"]])
def test_its_version_is_that_of_what_it_serves(programs: Path, arguments: list[str]) -> None:
    said = subprocess.run(
        [programs / "kube-apiserver", *arguments], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert re.fullmatch(r"Kubernetes v1\.36\.\d+\n", said)
