"""The record of requests, and the role in place of all rights, of envtest's `kube-apiserver`."""

from __future__ import annotations

import json
import signal
import ssl
import urllib.error
import urllib.request
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from steersman.cli import main
from steersman.testing.waiting import blocking_until_true
from tests.cli.envtest.programs import CONFIG_MAPS, Etcd, Running

ROLE = """\
kind: ClusterRole
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [create, get, delete]}
"""


class Administrator:
    """The client with the certificate of system:masters that the server makes, as envtest's clients have one."""

    def __init__(self, server: Running, kubeconfig: Path, folder: Path) -> None:
        user = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]
        pair = folder / "pair.pem"
        pair.write_bytes(b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"]))
        self._context = ssl.create_default_context(cafile=str(server.certificates / "apiserver.crt"))
        self._context.load_cert_chain(pair)
        self._url = f"https://127.0.0.1:{server.port}"

    def code(self, method: str, path: str, body: Any = None) -> int:
        data = None if body is None else json.dumps(body).encode()
        fields = {"Content-Type": "application/json", "User-Agent": "suite/v1 (linux)"}
        request = urllib.request.Request(self._url + path, data, fields, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_requests_are_recorded_also_by_a_server_that_is_killed(
    programs: Path, etcd: Etcd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    role, folder = tmp_path / "role.yaml", tmp_path / "requests"
    role.write_text(ROLE)
    monkeypatch.setenv("STEERSMAN_REPORT", str(folder))
    monkeypatch.setenv("STEERSMAN_ENVTEST_ROLE", str(role))
    server = Running(programs / "kube-apiserver", tmp_path / "server", f"--etcd-servers={etcd.url}")
    try:
        server.wait_ready()
        kubeconfig = etcd.folder / "admin.kubeconfig"
        blocking_until_true(lambda: kubeconfig.exists() and is_ready(server), 60)
        client = Administrator(server, kubeconfig, tmp_path)
        assert client.code("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}) == 201
        assert client.code("GET", f"{CONFIG_MAPS}/a") == 200
        assert client.code("GET", "/api/v1/secrets") == 403
        assert server.request("GET", "/api/v1/secrets")  # tokens keep their rights
        if end is signal.SIGKILL:
            _wait_until_written(folder, b'"secrets"', 2)
        server.process.send_signal(end)
        server.process.wait(30)
    finally:
        server.end()
    arguments = ["report", "--read", str(folder), "--user-agent", "suite", "--role", str(role)]
    found = CliRunner().invoke(main, arguments)
    assert found.exit_code == 0
    assert "suite/v1 (kubernetes-admin): 3 requests, 1 failed" in found.output
    assert "1 request lacked a right (403): list secrets" in found.output
    assert "granted, and not used: delete configmaps\n" in found.output
    least = yaml.safe_load(CliRunner().invoke(main, [*arguments, "-o", "role"]).output)
    assert least["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]}]


def is_ready(server: Running) -> bool:
    """Return True once the hooks have run, of which one writes the role."""
    try:
        return bool(server.request("GET", "/readyz") == b"ok")
    except OSError:
        return False


def _wait_until_written(folder: Path, text: bytes, times: int) -> None:
    blocking_until_true(lambda: sum(each.read_bytes().count(text) for each in folder.iterdir()) >= times, 30)


@pytest.mark.slow
def test_a_role_that_cannot_be_read_ends_the_start(
    programs: Path, etcd: Etcd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = tmp_path / "role.yaml"
    role.write_text("kind: ClusterRole\nrules: [3]\n")
    monkeypatch.setenv("STEERSMAN_ENVTEST_ROLE", str(role))
    server = Running(programs / "kube-apiserver", tmp_path / "server", f"--etcd-servers={etcd.url}")
    try:
        assert "the role for clients" in server.refusal()
    finally:
        server.end()
