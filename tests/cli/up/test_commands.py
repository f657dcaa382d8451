"""A cluster as a program: up, status, down."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.cli.up.process_file import claim, running


def run(*arguments: str, code: int = 0) -> str:
    """What the command says."""
    done = subprocess.run(
        [sys.executable, "-m", "steersman.cli", *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_a_folder_has_one_cluster_at_a_time(tmp_path: Path) -> None:
    assert running(tmp_path) is None
    claimed = claim(tmp_path)
    assert claimed is not None
    assert running(tmp_path) == os.getpid()
    assert claim(tmp_path) is None
    claimed.close()
    assert running(tmp_path) is None
    again = claim(tmp_path)
    assert again is not None
    again.close()


@pytest.mark.slow
def test_a_cluster_is_left_running_found_and_ended(tmp_path: Path) -> None:
    folder = str(tmp_path)
    where = ("--data-dir", folder)
    assert "no cluster runs" in run("status", *where, code=1)
    assert run("up", *where, "--secure-port=0", "--nodes=2", "--detach").startswith("ready url=https://127.0.0.1:")
    try:
        assert f"kubeconfig={folder}/admin.kubeconfig" in run("status", *where)
        assert "a cluster runs in" in run("up", *where, "--secure-port=0", code=1)
        assert "runs already" in run("up", *where, "--secure-port=0", "--detach", code=1)
    finally:
        assert run("down", *where) == "ended\n"
    assert "no cluster runs" in run("down", *where, code=1)


@pytest.mark.parametrize(("arguments", "told"), [
    (("--nodes=100000",), "from 0 to 32768 can be simulated"),
    (("--config=nothing.yaml",), "nothing.yaml"),
    (("--etcd-servers=x",), "--etcd-servers"),
])  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_starts(
    arguments: tuple[str, ...], told: str, tmp_path: Path
) -> None:  # fmt: skip
    said = run("up", f"--data-dir={tmp_path}/data", *arguments, code=1)
    assert told in said
    assert not (tmp_path / "data").exists()


def test_nodes_are_said_in_one_place(tmp_path: Path) -> None:
    config = tmp_path / "cluster.yaml"
    config.write_text("nodes: [{count: 2}]\n")
    assert "either of them" in run("up", f"--data-dir={tmp_path}/data", f"--config={config}", "--nodes=1", code=1)


def test_an_object_that_is_refused_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("objects: [wrong.yaml]\n")
    (tmp_path / "wrong.yaml").write_text("kind: ConfigMap\napiVersion: v1\nmetadata: {name: Bad_Name}\n")
    where = (f"--data-dir={tmp_path}/data", "--secure-port=0", "--storage=memory", f"--config={tmp_path}/cluster.yaml")
    said = run("up", *where, code=1)
    assert 'ConfigMap Bad_Name: ConfigMap "Bad_Name" is invalid' in said
    assert "Traceback" not in said
