"""Tests of programs of pods: they run with the content of their volumes, and end with their pods."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import BlockingClient, ThreadedEnvironment
from tools.conformance import pod_programs
from tools.conformance.pod_programs import PodPrograms, Programs

WEBHOOK = """\
#!/bin/sh
test "$1" = webhook && cat "${2#--tls-cert-file=}" > "$OUT"
exec sleep 600
"""
TELLING = """\
#!/bin/sh
echo "$0" "$@" > "$0.told"
exec sleep 600
"""
ENDING = """\
#!/bin/sh
echo begun > "$OUT"
"""


def pod(uid: str, *arguments: str, name: str = "main") -> dict[str, Any]:
    mount = {"name": "certs", "mountPath": "/local/certificates"}
    return {
        "metadata": {"uid": uid, "name": uid, "namespace": "default"},
        "spec": {
            "serviceAccountName": "default",
            "containers": [{"name": name, "args": list(arguments), "volumeMounts": [mount]}],
            "volumes": [{"name": "certs", "secret": {"secretName": "served"}}],
        },
    }


@pytest.fixture
def client(steersman_session: ThreadedEnvironment, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlockingClient]:
    monkeypatch.setattr(pod_programs, "own_address", lambda: "192.0.2.7")
    with steersman_session.client() as client:
        secret = {"metadata": {"name": "served"}, "data": {"tls.crt": base64.b64encode(b"a certificate").decode()}}
        client.json("POST", "/api/v1/namespaces/default/secrets", secret)
        client.json("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_webhook_runs_with_its_secret_until_its_pod_goes(
    steersman_session: ThreadedEnvironment, client: BlockingClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(told := tmp_path / "told")
    monkeypatch.setenv("OUT", str(told))
    program = script(tmp_path / "webhooks", WEBHOOK)
    programs = PodPrograms(steersman_session, client, Programs(program, Path("none"), Path("none")))
    try:
        served = pod("a", "webhook", "--tls-cert-file=/local/certificates/tls.crt")
        assert programs.run(served) == "192.0.2.7"
        assert told.read_text() == "a certificate"
        assert programs.run(served) == "192.0.2.7"
        assert programs.run(pod("b", "pause")) is None
        ((process,),) = programs._running.values()
        programs.keep(["a", "b"])
        assert process.poll() is None
        programs.keep(["b"])
        assert process.returncode is not None
    finally:
        programs.stop()


def test_an_aggregated_server_runs_with_an_etcd_as_its_service_account(
    steersman_session: ThreadedEnvironment, client: BlockingClient, tmp_path: Path
) -> None:
    for name in ("etcd", "sample"):
        os.mkfifo(tmp_path / f"{name}.told")
    etcd, sample = (script(tmp_path / name, TELLING) for name in ("etcd", "sample"))
    programs = PodPrograms(steersman_session, client, Programs(Path("none"), sample, etcd))
    try:
        arguments = ["--etcd-servers=http://127.0.0.1:2379", "--tls-cert-file=/local/certificates/tls.crt"]
        assert programs.run(pod("c", *arguments, name="sample-apiserver")) == "192.0.2.7"
        flags, etcd_flags = (
            dict(each.removeprefix("--").split("=", 1) for each in (tmp_path / f"{name}.told").read_text().split()[1:])
            for name in ("sample", "etcd")
        )
        assert flags["etcd-servers"] == etcd_flags["listen-client-urls"] != "http://127.0.0.1:2379"
        assert Path(flags["tls-cert-file"]).read_bytes() == b"a certificate"
        assert flags["bind-address"] == "192.0.2.7"
        (user,) = json.loads(Path(flags["kubeconfig"]).read_text())["users"]
        review = {"spec": {"token": user["user"]["token"]}}
        _, found = client.json("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert found["status"]["user"]["username"] == "system:serviceaccount:default:default"
    finally:
        programs.stop()


def test_a_program_that_ends_is_started_again(
    steersman_session: ThreadedEnvironment, client: BlockingClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may start before it has the rights that it needs, so programs are restarted, as by a kubelet."""
    os.mkfifo(told := tmp_path / "told")
    monkeypatch.setenv("OUT", str(told))
    program = script(tmp_path / "webhooks", ENDING)
    programs = PodPrograms(steersman_session, client, Programs(program, Path("none"), Path("none")))
    try:
        programs.run(pod("d", "webhook"))
        for _ in range(2):
            assert told.read_text() == "begun\n"
            programs._running["d"][0].wait()
            programs.keep(["d"])
    finally:
        programs.stop()
