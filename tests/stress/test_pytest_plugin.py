"""Servers of pytest's fixtures in a search of `steersman stress`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.stress.drop_in import Task, read_hits, read_points, write_task
from steersman.stress.point import Kind, PlannedFault, Point
from steersman.stress.pytest_plugin import take_part
from steersman.testing import Environment
from tests.stress.searches import found, stress

MAPS = "/api/v1/namespaces/default/configmaps"
SUITE = """
import threading
import time
from contextlib import suppress

from tests.stress.copying_operator import NAMESPACE, Api, names, reconcile


def operate(api, ended):
    while not ended.is_set():
        with suppress(OSError):
            for name in names(api):
                reconcile(api, name, careless=True)


def test_a_secret_has_a_token(steersman):
    kubeconfig, ended = steersman.kubeconfig(), threading.Event()
    threading.Thread(target=operate, args=(Api.of(kubeconfig), ended), daemon=True).start()
    suite = Api.of(kubeconfig, "suite")
    suite.request("POST", f"{NAMESPACE}/configmaps", {"metadata": {"name": "a", "labels": {"copy": ""}}})
    try:
        steersman.wait_for("secrets", "a", lambda secret: "token" in secret.get("data", {}), timeout=3)
    finally:
        ended.set()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Folder of a run, in which the first read of a ConfigMap fails."""
    at = Point("agent", "get", "configmaps", "default", "a")
    write_task(tmp_path, Task([PlannedFault(Kind.ERROR, at)]))
    end = take_part(tmp_path)
    yield tmp_path
    end()


async def status(environment: Environment) -> int:
    """Return the status of a read by the client of the point."""
    return (await environment.client().get(f"{MAPS}/a", user_agent="agent/1")).status


async def test_points_are_counted_from_the_reset_of_a_server(folder: Path) -> None:
    async with Environment() as environment:
        start = environment.snapshot()
        assert [await status(environment), await status(environment)] == [500, 404]
        await environment.renew(start)
        assert [await status(environment), await status(environment)] == [500, 404]
    assert [each.point.nth for each in read_points(folder)] == [1, 2, 1, 2]
    assert len(read_hits(folder)) == 2


async def test_files_of_servers_are_in_the_folder_of_the_run(folder: Path) -> None:
    async with Environment(listen=True) as environment:
        assert environment.kubeconfig().is_relative_to(folder)  # so that nothing is left if the suite is killed


async def test_a_server_that_cannot_take_part_does_not_start(folder: Path) -> None:
    (folder / "task.json").unlink()
    environment = Environment()
    with pytest.raises(FileNotFoundError):
        await environment.start()
    with pytest.raises(RuntimeError, match="not"):
        environment.client()


@pytest.mark.slow
def test_faults_happen_to_an_operator_in_a_suite_with_fixtures(tmp_path: Path) -> None:
    suite = tmp_path / "test_suite.py"
    suite.write_text(SUITE)
    plan = tmp_path / "plan.yaml"
    at = "{client: copier, verb: create, resource: secrets, namespace: default, name: a}"
    plan.write_text(f"faults: [{{kind: lost, at: {at}}}]\n")
    command = (sys.executable, "-m", "pytest", "-q", str(suite))
    done = stress("--client", "copier", "--plan", str(plan), "-o", "json", "--", *command, folder=tmp_path)
    assert found(done)["kinds"] == {"lost": {"tried": 1, "failed": 1, "missed": 0}}, done.stderr
    assert done.returncode == 1
