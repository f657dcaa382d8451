"""A server of several processes, as users run it: answers, and deaths of processes."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.testing.server_process import ServerProcess
from tests.storage.etcd.process import EtcdProcess

pytestmark = pytest.mark.slow

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "data", "--workers=2") as server:
        yield server


def workers(server: ServerProcess) -> list[int]:
    """Return the worker processes."""
    found: list[Any] = []
    for each in Path(f"/proc/{server.pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended
            found += map(int, each.read_text().split())
    return sorted(found)


def until(what: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.05)


def create(server: ServerProcess, name: str) -> int:
    """Send a request on a separate connection, and return the status."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    with server.client() as client:
        return client.json("POST", CONFIG_MAPS, body)[0]


def status_of(server: ServerProcess, name: str) -> int:
    return get(server, f"{CONFIG_MAPS}/{name}")


def get(server: ServerProcess, path: str) -> int:
    with server.client() as client:
        return client.request("GET", path)[0]


def requests_of(server: ServerProcess) -> float:
    with server.client() as client:
        text = client.request("GET", "/metrics")[1].decode()
    match = re.search(r'^apiserver_request_total\{verb="POST",[^}]*resource="configmaps"[^}]*\} (\d+)$', text, re.M)
    assert match is not None
    return float(match[1])


def test_what_is_acknowledged_is_seen_on_every_connection_at_once(server: ServerProcess) -> None:
    for number in range(20):
        assert create(server, f"a-{number}") == 201
        assert status_of(server, f"a-{number}") == 200
        assert status_of(server, f"a-{number}") == 200


def test_a_right_counts_for_all_workers_once_it_is_acknowledged(server: ServerProcess) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    for number in range(10):
        body = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"b-{number}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"u-{number}"}],
        }
        with server.client() as client:
            assert client.json("POST", role, body)[0] == 201
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": f"u-{number}", "resourceAttributes": {"verb": "list", "resource": "pods"}},
        }
        for _ in range(2):
            reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
            with server.client() as client:
                _, answer = client.json("POST", reviews, review)
            assert answer["status"]["allowed"] is True


def test_metrics_are_sums_over_all_workers_and_never_fall(server: ServerProcess) -> None:
    for number in range(6):
        assert create(server, f"m-{number}") == 201
    assert requests_of(server) == 6
    first, _ = workers(server)
    os.kill(first, signal.SIGKILL)
    until(lambda: len(workers(server)) == 2 and first not in workers(server))
    assert requests_of(server) == 6


def test_a_killed_worker_is_started_again_and_nothing_acknowledged_is_lost(server: ServerProcess) -> None:
    for number in range(4):
        assert create(server, f"k-{number}") == 201
    before = workers(server)
    for each in before:
        os.kill(each, signal.SIGKILL)
    until(lambda: len(set(workers(server)) - set(before)) == 2)
    until(lambda: get(server, "/readyz") == 200)
    assert [status_of(server, f"k-{number}") for number in range(4)] == [200] * 4


def test_workers_are_replaced_one_after_the_other_and_no_new_connection_fails(server: ServerProcess) -> None:
    before = workers(server)
    server.signal(signal.SIGHUP)
    made = 0
    while set(before) & set(workers(server)):
        assert create(server, f"r-{made}") == 201
        assert get(server, "/readyz") == 200
        made += 1
    assert made > 0
    assert [status_of(server, f"r-{number}") for number in range(made)] == [200] * made
    assert get(server, "/api/v1/namespaces/default/endpoints/kubernetes") == 200


def test_kept_connections_are_answered_while_workers_are_replaced(server: ServerProcess) -> None:
    before = workers(server)
    kept = [http.client.HTTPSConnection(*server.address, context=server.context(), timeout=10) for _ in range(4)]
    server.signal(signal.SIGHUP)
    told = 0
    try:
        while set(before) & set(workers(server)):
            for each in kept:
                each.request("GET", CONFIG_MAPS)
                answer = each.getresponse()
                answer.read()
                assert answer.status == 200
                told += answer.headers["Connection"] == "close"
    finally:
        for each in kept:
            each.close()
    assert told >= 2


def test_a_start_goes_on_though_workers_are_to_be_replaced(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--workers=2")
    server.launch()
    try:
        until(lambda: workers(server) != [])
        server.signal(signal.SIGHUP)
        server.wait_ready()
        assert get(server, "/readyz") == 200
    finally:
        server.kill()


def test_workers_end_with_their_owner_and_another_one_has_what_was_acknowledged(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--workers=2")
    server.start()
    children = workers(server)
    for number in range(5):
        assert create(server, f"o-{number}") == 201
    server.kill()
    until(lambda: not any(Path(f"/proc/{each}/cmdline").exists() and _runs(each) for each in children))
    server.start()
    try:
        assert [status_of(server, f"o-{number}") for number in range(5)] == [200] * 5
    finally:
        server.stop()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux kills a process with its parent")
def test_a_worker_that_hangs_ends_with_its_owner(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--workers=2")
    server.start()
    hanging, other = workers(server)
    os.kill(hanging, signal.SIGSTOP)
    try:
        server.kill()
        until(lambda: not _runs(hanging) and not _runs(other))
    finally:
        if _runs(hanging):
            os.kill(hanging, signal.SIGKILL)


def _runs(pid: int) -> bool:
    try:
        return "steersman.cli.worker" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def test_each_worker_opens_an_etcd_by_itself(tmp_path: Path) -> None:
    etcd = EtcdProcess(tmp_path / "etcd")
    etcd.start()
    try:
        with ServerProcess(tmp_path / "data", "--workers=2", f"--etcd-servers={etcd.url}") as server:
            for number in range(6):
                assert create(server, f"e-{number}") == 201
                assert status_of(server, f"e-{number}") == 200
            assert requests_of(server) == 6
    finally:
        etcd.stop()


def test_one_audit_log_has_every_request(tmp_path: Path) -> None:
    policy, log = tmp_path / "policy.yaml", tmp_path / "logs" / "audit.log"
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\nomitStages: [RequestReceived]"
    )
    flags = f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking-strict"
    with ServerProcess(tmp_path / "data", "--workers=2", *flags) as server:
        for number in range(10):
            assert create(server, f"l-{number}") == 201
        recorded = re.findall(r'"verb":"create".*"name":"(l-\d)"', log.read_text())
        assert sorted(recorded) == [f"l-{number}" for number in range(10)]


def test_the_end_is_orderly(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--workers=2")
    server.start()
    assert create(server, "a") == 201
    children = workers(server)
    assert server.stop() == 0
    assert not any(map(_runs, children))
    assert not re.search(r"worker \d+ .*(has ended|is killed)|does not end", server.errors.read_text())


def test_a_start_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--workers=2", "--token-auth-file=/nowhere")
    server.launch()
    assert server.wait() == 1
    lines = server.errors.read_text().splitlines()
    assert len(lines) == 1
    assert "/nowhere" in lines[0]


def test_other_commands_have_one_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("steersman"), "up", "--workers=2", f"--data-dir={tmp_path}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode != 0
    assert "--workers" in done.stderr
