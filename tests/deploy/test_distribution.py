"""The wheel, the image and the action, used as those who install them do: without the checkout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.markdown_documents import Document

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist that `make dist` builds, in a copy of the checkout."""
    copy = tmp_path_factory.mktemp("checkout") / "steersman"
    made = shutil.ignore_patterns(".git", ".venv*", ".*_cache", ".hypothesis", "__pycache__", "dist", "site", "found")
    shutil.copytree(ROOT, copy, ignore=made)
    subprocess.run(["make", "dist", f"PYTHON={sys.executable}"], cwd=copy, check=True, capture_output=True)
    return copy / "dist"


@pytest.fixture
def wheel(distributions: Path) -> Path:
    (found,) = distributions.glob("*.whl")
    return found


def test_checksums_are_those_of_the_files(distributions: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=distributions, check=True)


def test_a_second_build_makes_the_same_files(distributions: Path) -> None:
    before = (distributions / "SHA256SUMS").read_text()
    command = ["make", "dist", f"PYTHON={sys.executable}"]
    subprocess.run(command, cwd=distributions.parent, check=True, capture_output=True)
    assert (distributions / "SHA256SUMS").read_text() == before


def test_the_wheel_is_installed_by_the_commands_of_the_documents(wheel: Path, tmp_path: Path) -> None:
    """Commands of uv and pipx are run where these programs are."""
    blocks = [
        block
        for name in ("README.md", "docs/install.md", "docs/testing.md")
        for block in Document(ROOT / name).blocks("sh")
    ]
    commands = {
        line.partition("#")[0].strip(): None for line in "".join(blocks).splitlines() if "steersman up" not in line
    }
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    (constraint := tmp_path / "constraint.txt").write_text(f"steersman=={wheel.name.split('-')[1]}\n")
    programs = f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "HOME": str(tmp_path)}
    environment |= {"PIP_CONSTRAINT": str(constraint), "UV_CONSTRAINT": str(constraint)}
    for name in ("PIP_FIND_LINKS", "UV_FIND_LINKS"):
        environment[name] = f"{os.environ.get(name, '')} {wheel.parent}".strip()
    ran = []
    for command in commands:
        if shutil.which(shlex.split(command)[0], path=programs):
            done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, (command, done.stderr)
            ran.append(command)
    assert {"pip install steersman", 'pip install "steersman[all]"'} <= set(ran)
    version = subprocess.run([tmp_path / "venv" / "bin" / "steersman", "--version"], capture_output=True, text=True)
    assert version.returncode == 0


def test_the_wheel_is_used_in_a_clean_environment(wheel: Path) -> None:
    command: list[str | Path] = [sys.executable, "-m", "tools.try_wheel", wheel]
    tried = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    packages = re.search(r": (\d+) packages beside steersman", tried.stdout)
    assert packages is not None
    assert int(packages[1]) <= 15


@pytest.mark.skipif(
    os.geteuid() != 0
    or shutil.which("setpriv") is None
    or not Path("/usr/bin/python3.11").exists()
    or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0,
    reason="needs root, mount namespaces and a Python that all users may run",
)
def test_the_image_runs_without_rights_on_a_read_only_root(wheel: Path) -> None:
    command: list[str | Path] = [sys.executable, "-m", "tools.try_image", wheel]
    tried = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "on a read-only root" in tried.stdout


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The variables that a runner of actions sets. What was started is ended."""
    files = {"GITHUB_ENV": "env", "GITHUB_OUTPUT": "output", "GITHUB_PATH": "path"}
    yield {
        **os.environ,
        "RUNNER_TEMP": str(tmp_path),
        **{name: str(tmp_path / file) for name, file in files.items()},
    }
    steersman = tmp_path / "steersman/venv/bin/steersman"
    subprocess.run([steersman, "down", "--data-dir", tmp_path / "steersman/data"], capture_output=True)


@pytest.mark.parametrize("command", ["up", "serve"])
def test_the_action_leaves_a_server_that_answers(
    runner: dict[str, str], wheel: Path, command: str, tmp_path: Path
) -> None:
    inputs = {"STEERSMAN_COMMAND": command, "STEERSMAN_PACKAGE": str(wheel), "STEERSMAN_FLAGS": "--secure-port 0"}
    subprocess.run(["bash", ROOT / "deploy/action.sh"], env=runner | inputs, check=True, capture_output=True)
    assert (tmp_path / "env").read_text() == f"KUBECONFIG={tmp_path}/steersman/data/admin.kubeconfig\n"
    outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert outputs["kubeconfig"] == f"{tmp_path}/steersman/data/admin.kubeconfig"
    assert re.fullmatch(r"\S+ \(Kubernetes v1\.\d+\.\d+\)", outputs["version"])
    program = (tmp_path / "path").read_text().strip() + "/steersman"
    status = subprocess.run([program, "status", "--data-dir", tmp_path / "steersman/data"], capture_output=True)
    assert status.returncode == 0


def test_an_unknown_command_is_refused(runner: dict[str, str], wheel: Path) -> None:
    inputs = {"STEERSMAN_COMMAND": "down", "STEERSMAN_PACKAGE": str(wheel)}
    done = subprocess.run(["bash", ROOT / "deploy/action.sh"], env=runner | inputs, capture_output=True, text=True)
    assert (done.returncode, '"down": up or serve is expected' in done.stderr) == (1, True)
