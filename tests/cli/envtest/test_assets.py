"""The folder of `steersman envtest`: its content, its updates, and the output for shells."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

import steersman
from steersman.cli import main
from steersman.cli.envtest import assets


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["envtest", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_folder_is_below_the_users_cache_and_named_by_the_version(cache: Path) -> None:
    folder = Path(printed().removesuffix("\n"))
    assert folder.is_relative_to(cache / "steersman" / "envtest")
    version, k8s, release = folder.relative_to(cache / "steersman" / "envtest").parts
    assert version.startswith(f"{steersman.__version__}-")
    # Paths at which jenvtest and kube-api-test look below their folder.
    assert k8s == "k8s"
    assert re.fullmatch(r"1\.36\.\d+-(linux|darwin)-(amd64|arm64)", release)
    assert all(os.access(folder / name, os.X_OK) for name in ("kube-apiserver", "etcd"))


def test_tools_in_java_find_the_programs_by_the_names_of_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """jenvtest 0.9.7 and kube-api-test 7.6.1 search for the system's highest version, or for `1.36.*`.

    All three files must exist, including kubectl.
    """
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.parent.mkdir()
    shutil.copy("/bin/sh", kubectl)
    monkeypatch.setenv("PATH", str(kubectl.parent))
    printed()
    home, machine = assets.home_folder(), platform.machine()
    system = {"Linux": "linux", "Darwin": "darwin"}[platform.system()]
    suffix = f"-{system}-{'arm64' if machine in ('aarch64', 'arm64') else 'amd64'}"
    versions = [name.removesuffix(suffix) for name in os.listdir(home / "k8s") if name.endswith(suffix)]
    latest = max(versions, key=lambda version: [int(part) for part in version.split(".")])
    assert latest.startswith("1.36.")
    folder = home / "k8s" / f"{latest}{suffix}"
    assert all((folder / name).is_file() for name in ("etcd", "kube-apiserver", "kubectl"))


def test_a_second_time_writes_nothing_and_repairs_what_is_not_as_it_was() -> None:
    folder = Path(printed().removesuffix("\n"))
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if not path.is_symlink()}
    printed()
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if not path.is_symlink()} == before
    good = (folder / "etcd").read_bytes()
    (folder / "etcd").write_text("of an older one")
    printed()
    assert (folder / "etcd").read_bytes() == good


def test_a_shell_is_told_what_tools_read(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", f"{cache}/with a space and a 'quote'")
    text = printed("--env")
    script = f'{text}\nenv | grep -E "^(KUBEBUILDER_ASSETS|JENVTEST_DIR|KUBE_API_TEST_DIR|TEST_ASSET)"'
    done = subprocess.run(
        ["sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={**os.environ, "TEST_ASSET_ETCD": "/another"},
    )
    told = dict(line.split("=", 1) for line in done.stdout.splitlines())
    home = assets.home_folder()
    assert told == {
        "KUBEBUILDER_ASSETS": str(assets.programs_folder(home)),
        "JENVTEST_DIR": str(home),
        "KUBE_API_TEST_DIR": str(home),
    }
    assert subprocess.run(
        [Path(told["KUBEBUILDER_ASSETS"]) / "etcd", "--name=a", "--version"],
        stdout=subprocess.PIPE,
        timeout=30,
        check=True,
    ).stdout


def test_kubectl_is_a_link_to_the_one_in_path_and_never_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    link = assets.make(home) / "kubectl"
    assert not link.is_symlink()
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy("/bin/sh", folder / "kubectl")
        monkeypatch.setenv("PATH", str(folder))
        assets.make(home)
        assert os.readlink(link) == str(folder / "kubectl")
    monkeypatch.setenv("PATH", str(link.parent))
    assets.make(home)
    assert os.readlink(link) == str(tmp_path / "second" / "kubectl")


def test_a_cache_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    done = CliRunner().invoke(main, ["envtest"])
    assert done.exit_code == 1
    assert "cannot create " in done.output


def test_programs_with_controllers_and_nodes_have_folders_of_their_own() -> None:
    folders = [
        Path(printed(*arguments).removesuffix("\n"))
        for arguments in ((), ("--controllers",), ("--cluster",), ("--cluster", "--nodes", "3"))
    ]
    assert len(set(folders)) == 4
    codes = [re.search(r"; main\((.*)\)", (each / "kube-apiserver").read_text()) for each in folders]
    assert [each and each[1] for each in codes] == ["", "nodes=0", "nodes=1", "nodes=3"]
