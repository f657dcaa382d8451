"""The fixtures `steersman` and `steersman_session`, in projects that use them and in projects that do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(folder: Path, test: str, *arguments: str) -> str:
    """Run pytest on one test file, check that all tests pass, and return the output."""
    (folder / "test_it.py").write_text(test)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--strict-markers", "-p", "no:cacheprovider", "-p", "no:asyncio", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


@pytest.mark.slow
def test_each_test_has_a_server_of_its_own_and_all_share_another(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
import pytest
MAPS = "/api/v1/namespaces/default/configmaps"

@pytest.mark.parametrize("number", range(3))
def test_own(number, steersman, steersman_session):
    assert steersman.url != steersman_session.url
    for server, before in ((steersman, 0), (steersman_session, number)):
        with server.client() as client:
            assert len(client.json("GET", MAPS)[1]["items"]) == before
            assert client.json("POST", MAPS, {"metadata": {"name": f"a{number}"}})[0] == 201
    assert steersman.kubeconfig() != steersman_session.kubeconfig()
""",
    )


@pytest.mark.slow
def test_a_mark_gives_users_and_flags(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
import pytest
from steersman.testing import ADMIN, User

pytestmark = pytest.mark.steersman(users=[ADMIN, User("bob")], max_requests_inflight=7)

@pytest.mark.steersman(users=[ADMIN, User("alice")])
def test_the_nearest_counts(steersman):
    assert list(steersman.environment.users) == ["admin", "alice"]
    assert steersman.environment.plane.options.max_requests_inflight == 7

def test_that_of_the_module(steersman):
    assert list(steersman.environment.users) == ["admin", "bob"]
""",
    )


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: PLURAL, singular: a-KIND, kind: KIND, listKind: KINDList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


@pytest.mark.slow
def test_definitions_of_the_setting_and_the_mark_are_established(tmp_path: Path) -> None:
    (tmp_path / "crds").mkdir()
    for path, plural, kind in (
        (tmp_path / "crds" / "a.yaml", "boats", "Boat"),
        (tmp_path / "cars.yaml", "cars", "Car"),
    ):
        path.write_text(CRD.replace("PLURAL", plural).replace("a-KIND", kind.lower()).replace("KIND", kind))
    (tmp_path / "pytest.ini").write_text("[pytest]\nsteersman_crds = crds\n")
    run(
        tmp_path,
        """
import pytest

def statuses(server):
    with server.client() as client:
        return [client.request("GET", f"/apis/example.com/v1/{plural}")[0] for plural in ("boats", "cars")]

@pytest.mark.steersman(crds=["cars.yaml"])
def test_both(steersman, steersman_session):
    assert statuses(steersman) == [200, 200]
    assert statuses(steersman_session) == [200, 404]
""",
    )


@pytest.mark.slow
def test_nothing_is_imported_before_a_fixture_is_asked_for(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
import sys

def test_nothing_is_here():
    found = {name for name in sys.modules if name.partition(".")[0] in ("steersman", "uvloop", "msgspec", "yaml")}
    assert found <= {"steersman", "steersman.testing", "steersman.testing.pytest_plugin"}
    assert "steersman.testing.pytest_plugin" in sys.modules
""",
    )


@pytest.mark.slow
def test_the_servers_modules_are_not_recompiled_by_pytest(tmp_path: Path) -> None:
    """pytest compiles packages with plugins again. For those of a server, that takes longer than the server's start."""
    run(
        tmp_path,
        """
import sys

def test_loaders(steersman):
    by_pytest = [name for name, module in sys.modules.items()
                 if name.startswith("steersman.") and "_pytest" in type(module.__loader__).__module__]
    assert set(by_pytest) <= {"steersman.testing", "steersman.testing.pytest_plugin"}
""",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "reported"), [("--fixtures", "steersman_session"), ("--markers", "steersman(crds=")]
)
def test_pytest_tells_of_them(option: str, reported: str, tmp_path: Path) -> None:
    assert reported in run(tmp_path, "", option)


@pytest.mark.slow
def test_each_test_has_a_cluster_that_is_as_new(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
import pytest

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
SPEC = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"

def deploy(server):
    with server.client() as client:
        assert client.json("GET", "/api/v1/pods")[1]["items"] == []
        assert client.json("POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": SPEC})[0] == 201

@pytest.mark.parametrize("number", range(2))
def test_controllers(number, steersman_controllers):
    deploy(steersman_controllers)
    pods = steersman_controllers.wait_for("pods", until=lambda pods: len(pods) == 2)
    assert {each["status"]["phase"] for each in pods} == {"Pending"}
    assert steersman_controllers.wait_for("serviceaccounts", "default")

@pytest.mark.parametrize("number", range(2))
def test_cluster(number, steersman_cluster):
    deploy(steersman_cluster)
    steersman_cluster.wait_for("deploy", "web", "condition=Available")

@pytest.mark.steersman(nodes=2)
def test_nodes(steersman_cluster):
    assert len(steersman_cluster.wait_for("nodes", until="condition=Ready")) == 2
""",
    )


@pytest.mark.slow
def test_a_test_moves_time_and_the_next_has_it_back(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
import time
from datetime import datetime, timezone

SPEC = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a", "command": ["sleep", "30"]}]}
JOB = {"spec": {"template": {"spec": SPEC}}}
CRON_JOB = {"metadata": {"name": "tick"}, "spec": {"schedule": "*/5 * * * *", "jobTemplate": JOB}}

def test_jobs_come_when_they_are_due(steersman_cluster, steersman_clock):
    with steersman_cluster.client() as client:
        assert client.json("POST", "/apis/batch/v1/namespaces/default/cronjobs", CRON_JOB)[0] == 201
        began = time.monotonic()
        steersman_clock.advance(minutes=12)
        assert time.monotonic() - began < 60
        tick = "/apis/batch/v1/namespaces/default/cronjobs/tick"
        suspended = client.json("GET", tick)[1]
        suspended["spec"]["suspend"] = True
        assert client.json("PUT", tick, suspended)[0] == 200
        steersman_clock.advance(minutes=1)  # in the first minute, the last run may not have ended
        jobs = client.json("GET", "/apis/batch/v1/namespaces/default/jobs")[1]["items"]
        assert len(jobs) in (2, 3)
        assert {each["status"].get("succeeded") for each in jobs} == {1}
        steersman_cluster.wait_for("nodes", "node-0", "condition=Ready")

def test_it_is_now(steersman):
    with steersman.client() as client:
        made = client.json("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})[1]
    then = datetime.fromisoformat(made["metadata"]["creationTimestamp"])
    assert abs((datetime.now(timezone.utc) - then).total_seconds()) < 30
""",
    )


@pytest.mark.slow
def test_the_report_of_a_test_that_fails_has_requests_and_events(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("""
EVENT = {"metadata": {"name": "a"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
         "type": "Warning", "reason": "Failed", "message": "it did not"}

def test_it(steersman):
    with steersman.client() as client:
        client.json("POST", "/api/v1/namespaces/default/events", EVENT)
        client.json("POST", "/api/v1/namespaces/default/secrets",
                    {"metadata": {"name": "a"}, "stringData": {"a": "hunter2"[::1]}})
        client.json("GET", "/api/v1/namespaces/default/pods?limit=7777")
    assert steersman.wait_for("pods", "web", timeout=0.1)
""")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", "-n", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    reported = done.stdout
    assert "NotReached: pods/web in namespace default: not there after 0.1 s" in reported
    assert ".py:11: NotReached" in reported  # the line of the test
    report = reported[reported.rindex("- steersman -") :]
    assert "create           /api/v1/namespaces/default/secrets  admin  201  " in report
    assert "list             /api/v1/namespaces/default/pods  admin  200  " in report
    assert "Warning Failed  pod/web: it did not" in report
    assert "hunter2" not in report
    assert "7777" not in report


@pytest.mark.slow
def test_a_clock_without_a_server_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(steersman_clock): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "ask for one of the fixtures of servers too" in done.stdout


@pytest.mark.slow
def test_it_works_in_processes_side_by_side_and_on_the_loops_of_tests(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("""
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"
""")
    run(
        tmp_path,
        """
import asyncio
import pytest

pytestmark = pytest.mark.anyio
SECRET = {"metadata": {"name": "a"}, "stringData": {"a": "b"}}

@pytest.mark.parametrize("number", range(4))
async def test_coroutines(number, steersman):
    async def soon():
        await asyncio.sleep(0.01)
        with steersman.client() as client:
            client.json("POST", "/api/v1/namespaces/default/secrets", SECRET)

    task = asyncio.create_task(soon())
    assert (await steersman.wait_for_async("secrets", "a"))["type"] == "Opaque"
    await task
""",
        "-n",
        "2",
    )


@pytest.mark.slow
def test_a_report_on_the_requests_to_all_servers_is_printed_at_the_end(tmp_path: Path) -> None:
    test = """
import pytest
MAPS = "/api/v1/namespaces/default/configmaps"

@pytest.mark.parametrize("number", range(2))
def test_writes(number, steersman, steersman_session):
    for server in (steersman, steersman_session):
        with server.client() as client:
            client.json("POST", MAPS, {"metadata": {"name": f"a{number}"}})
            client.json("PUT", f"{MAPS}/a{number}", {"metadata": {"name": f"a{number}"}})
"""
    for arguments in (["--steersman-report"], ["-o", "steersman_report=-"], ["--steersman-report=-", "-n2"]):
        told = run(tmp_path, test, *arguments)
        assert "requests to steersman's servers" in told
        assert "(admin): 8 requests, 0 failed" in told
        assert "2 writes of configmaps default/a0 changed nothing" in told
    assert "no requests of clients" in run(tmp_path, test, "--steersman-report=my-operator")
    assert "requests to" not in run(tmp_path, test)


@pytest.mark.slow
def test_several_clusters_are_empty_in_each_test(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
import pytest
MAPS = "/api/v1/namespaces/default/configmaps"

@pytest.mark.parametrize("number", range(2))
@pytest.mark.steersman(clusters=["hub", "spoke"])
def test_named(number, steersman_clusters, steersman, tmp_path):
    assert list(steersman_clusters) == ["hub", "spoke"]
    assert len({each.url for each in (*steersman_clusters.values(), steersman)}) == 3
    for each in steersman_clusters.values():
        with each.client() as client:
            assert client.json("GET", MAPS)[1]["items"] == []
            assert client.json("POST", MAPS, {"metadata": {"name": "a"}})[0] == 201
    assert "name: spoke" in steersman_clusters.write_kubeconfig(tmp_path / "k").read_text().replace('"', "")

@pytest.mark.steersman(fresh=True)
def test_unnamed(steersman_clusters):
    assert list(steersman_clusters) == ["one", "two"]
""",
    )
