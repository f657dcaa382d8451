"""`steersman history`, `diff` and `fork` on servers in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from steersman.cli import main
from steersman.cli.history.sources import WatchedHistory
from steersman.client.client import Client
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import CONFIG_MAPS
from steersman.storage.sqlite import snapshot
from steersman.testing import ServerProcess
from steersman.testing.blocking_client import BlockingClient
from steersman.webhooks.kubeconfig import load_kubeconfig

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = {"content-type": "application/merge-patch+json"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with history, in which a ConfigMap and a Secret were created, changed and deleted."""
    with ServerProcess(tmp_path_factory.mktemp("history") / "data", "--history=64MiB,1h") as process:
        with process.client() as client:
            fill(client)
        yield process


def fill(client: BlockingClient) -> None:
    """Create, change and delete objects."""
    client.request("POST", f"{MAPS}?fieldManager=maker", config_map("a", x="1"))
    client.request("PATCH", f"{MAPS}/a?fieldManager=changer", {"data": {"x": "\x1b[31mred", "z": "3"}}, MERGE)
    client.request("POST", MAPS, config_map("b"))
    client.request("DELETE", f"{MAPS}/b")
    secrets = MAPS.replace("configmaps", "secrets")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "b25l"}}
    client.request("POST", secrets, secret)
    client.request("PATCH", f"{secrets}/s", {"data": {"k": "dHdv"}}, MERGE)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def run(server: ServerProcess, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--data-dir", str(server.folder)])


def revisions(server: ServerProcess, what: str) -> list[str]:
    """Return the revisions of an object, oldest first."""
    document = json.loads(run(server, "history", what, "-o", "json").stdout)
    return [each["revision"] for each in document["items"]]


def test_writes_of_an_object_are_a_table_newest_last(running: ServerProcess) -> None:
    result = run(running, "history", "cm/a")
    assert result.exit_code == 0, result.output
    header, made, changed = result.stdout.splitlines()
    assert header.split() == ["REVISION", "TIME", "VERB", "USER", "MANAGER", "CHANGE"]
    assert "maker" in made
    assert made.endswith("created")
    assert "changer" in changed
    assert changed.endswith("+.data.z: 3, .data.x: 1 -> \\x1b[31mred")
    assert "\x1b" not in result.stdout


def test_writes_of_a_kind_name_their_objects(running: ServerProcess) -> None:
    result = run(running, "history", "configmaps", "-n", "default", "-o", "wide")
    lines = result.stdout.splitlines()
    assert "USER-AGENT" in lines[0]
    assert [line.split()[3] for line in lines[1:]][-4:] == ["default/a", "default/a", "default/b", "default/b"]
    assert lines[-1].endswith("deleted")


def test_a_diff_shows_lines_of_yaml(running: ServerProcess) -> None:
    lines = run(running, "history", "cm", "a", "--diff").stdout.splitlines()
    assert '+  z: "3"' in lines
    assert not any("resourceVersion" in line or "managedFields" in line for line in lines)


def test_an_object_is_printed_as_it_was(running: ServerProcess) -> None:
    first, second = revisions(running, "cm/a")
    was = json.loads(run(running, "history", "cm/a", "--at", first, "-o", "json").stdout)
    assert was["data"] == {"x": "1"}
    now = json.loads(run(running, "history", "cm/a", "--at", "now", "-o", "json").stdout)
    assert now["metadata"]["resourceVersion"] == second


def test_values_of_secrets_are_shown_only_on_request(running: ServerProcess) -> None:
    for arguments in (
        ("history", "secret/s"),
        ("history", "secret/s", "-o", "yaml"),
        ("history", "secret/s", "--diff"),
    ):
        shown = run(running, *arguments).stdout
        assert "dHdv" not in shown
        assert "b25l" not in shown
        assert "dHdv" in run(running, *arguments, "--show-secrets").stdout


def test_two_points_of_a_cluster_are_compared(running: ServerProcess) -> None:
    first, _ = revisions(running, "cm/a")
    result = run(running, "diff", "--from", first, "--to", "now")
    lines = result.stdout.splitlines()
    assert lines[0].endswith(": 1 added, 0 removed, 1 changed")
    assert "~ configmaps default/a" in lines
    assert "    +.data.z: 3" in lines
    assert "+ secrets default/s" in lines
    assert not any("default/b" in line for line in lines), "it came and went"
    only = json.loads(run(running, "diff", "secrets", "--from", first, "-o", "json").stdout)
    assert [each["name"] for each in only["objects"]] == ["s"]
    assert run(running, "diff", "--from", "now", "-n", "default").stdout.count("\n") == 1


def test_a_user_without_the_path_gets_what_watches_keep(running: ServerProcess) -> None:
    async def read() -> tuple[list[dict[str, Any]], bytes]:
        client = Client(TLSTransport(load_kubeconfig(running.kubeconfig)), "test")
        try:
            source = WatchedHistory(client)
            found = await source.entries(CONFIG_MAPS, "default", "a", 10, objects=False, secrets=False)
            oldest = await source.object_at(CONFIG_MAPS, "default", "a", found[-1]["revision"], secrets=False)
            return found, oldest
        finally:
            await client.aclose()

    found, oldest = asyncio.run(read())
    assert [each["type"] for each in found] == ["MODIFIED", "ADDED"]
    assert [each["path"] for each in found[0]["changes"]] == [".data.z", ".data.x"]
    assert json.loads(oldest)["data"] == {"x": "1"}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("history", "nothing"), "doesn't have a resource type"),
        (("history", "cm/none"), "not found"),
        (("history", "cm/a", "--at", "999999999"), "is in the future"),
        (("history", "cm/a", "--at", "1970-01-01T00:00:00Z"), "not found"),
        (("diff", "--from", "999999999"), "is in the future"),
    ],
)
def test_errors_are_one_line(running: ServerProcess, arguments: tuple[str, ...], why: str) -> None:
    result = run(running, *arguments)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert why in result.stderr


@pytest.mark.parametrize("point", ["0", "-5", "9" * 30, "yesterday", "1h2", "2026-01-01", "", "99999999999h"])
def test_other_points_are_refused(running: ServerProcess, point: str) -> None:
    result = run(running, "history", "cm/a", f"--at={point}")
    assert result.exit_code == 1
    assert "--at" in result.stderr


def test_a_fork_has_the_objects_of_its_revision(running: ServerProcess, tmp_path: Path) -> None:
    first, _ = revisions(running, "cm/a")
    folder = tmp_path / "fork"
    folder.mkdir(mode=0o700)
    (folder / "steersman.db.restoring").write_bytes(b"left by a killed command")
    result = run(running, "fork", "--at", first, str(folder))
    assert result.stdout == f"forked {folder}/steersman.db: revision {first}\n"
    assert sorted(each.name for each in folder.iterdir()) == ["steersman.db", "steersman.db.lock"]
    with ServerProcess(folder, "--history=64MiB,1h") as server:
        with server.client() as client:
            found = client.json("GET", f"{MAPS}/a")[1]
        assert found["data"] == {"x": "1"}
        assert revisions(server, "cm/a") == [first]
    again = run(running, "fork", "--at", first, str(folder))
    assert (again.exit_code, "already exists" in again.stderr) == (1, True)


@pytest.mark.slow
def test_a_fork_that_is_killed_is_complete_or_not_there(running: ServerProcess, tmp_path: Path) -> None:
    (point, *_) = revisions(running, "cm/a")
    folder = tmp_path / "fork"
    command = [sys.executable, "-m", "steersman.cli", "fork", "--at", point, str(folder), "--data-dir"]
    chance, unfinished = random.Random(7), 0
    for _ in range(10):
        shutil.rmtree(folder, ignore_errors=True)
        forking = subprocess.Popen([*command, str(running.folder)], stdout=subprocess.DEVNULL)
        while forking.poll() is None and not list(folder.glob("*.restoring*")):
            time.sleep(0.001)
        time.sleep(chance.random() * 0.01)
        forking.kill()
        forking.wait()
        if not (folder / "steersman.db").exists():
            unfinished += 1
            continue
        assert snapshot.save(folder / "steersman.db", tmp_path / "copy").revision == int(point)
    assert unfinished
    (folder / "steersman.db").unlink(missing_ok=True)
    assert run(running, "fork", "--at", point, str(folder)).exit_code == 0


def test_a_fork_of_an_unknown_point_leaves_nothing(running: ServerProcess, tmp_path: Path) -> None:
    (own := tmp_path / "own").mkdir()
    for folder in (tmp_path / "fork", own):
        result = run(running, "fork", "--at", "999999999", str(folder))
        assert result.exit_code == 1
        assert "in the future" in result.stderr
    assert list(tmp_path.iterdir()) == [own]
    assert not list(own.iterdir())
    with contextlib.closing(sqlite3.connect(running.folder / "steersman.db")) as connection, connection:
        assert connection.execute("SELECT count(*) FROM log").fetchone() > (0,)
