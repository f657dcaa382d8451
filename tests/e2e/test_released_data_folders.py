"""Tests that this version opens data folders and snapshots of released versions without loss."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from steersman.storage.sqlite.file import SCHEMA_VERSION
from tests import ROOT
from tools.record_release import served

pytestmark = pytest.mark.slow

RELEASES = sorted((ROOT / "tests/released").glob("*.tar.xz"))
STEERSMAN = Path(sys.executable).with_name("steersman")
KUBERNETES = {("/api/v1/services", "kubernetes"), ("/api/v1/endpoints", "kubernetes")} | {
    ("/apis/discovery.k8s.io/v1/endpointslices", "kubernetes")
}
"""Objects with the address of the server, which each start updates."""

Objects = dict[tuple[str, str, str], Any]


def by_name(lists: dict[str, list[Any]]) -> Objects:
    """Return objects by the path of their list, namespace and name."""
    found: Objects = {}
    for path, items in lists.items():
        for each in items:
            name = each["metadata"]["name"]
            if (path, name) not in KUBERNETES:
                found[path, each["metadata"].get("namespace", ""), name] = each
    return found


@pytest.fixture(params=RELEASES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def released(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the unpacked recording of a release."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def test_there_is_a_recording_of_a_release() -> None:
    assert RELEASES


def test_every_object_of_a_data_folder_is_as_it_was(released: Path) -> None:
    recorded = by_name(json.loads((released / "objects.json").read_text()))
    assert ("/apis/example.com/v1/widgets", "default", "a") in recorded
    found = by_name(dict(served(released / "data")))
    assert {key: found.get(key) for key in recorded} == recorded


def test_every_object_of_a_snapshot_is_restored(released: Path) -> None:
    recorded = by_name(json.loads((released / "objects.json").read_text()))
    folder = f"--data-dir={released / 'data'}"
    subprocess.run([STEERSMAN, "storage", "restore", folder, "--replace", released / "snapshot"], check=True)
    found = by_name(dict(served(released / "data")))
    assert {key: _without_version(found.get(key)) for key in recorded} == {
        key: _without_version(each) for key, each in recorded.items()
    }


def _without_version(obj: Any) -> Any:
    """Return an object without its resourceVersion, which a restored snapshot raises."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return {**obj, "metadata": metadata}


def test_a_folder_of_a_newer_version_is_refused_and_left_as_it_is(released: Path) -> None:
    file = released / "data" / "steersman.db"
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    before = file.read_bytes()
    command: list[str | Path] = [STEERSMAN, "serve", "--secure-port=0", f"--data-dir={released / 'data'}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "newer" in ended.stderr
    assert file.read_bytes() == before
