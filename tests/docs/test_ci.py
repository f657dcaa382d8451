"""Tests of the steps of `.ci/run`, with fake make and Python programs that record their arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

MAKE = """#!/bin/sh
echo "make $*" >>"$SAID"
venv=.venv
for argument in "$@"; do
    case $argument in VENV=*) venv=${argument#VENV=} ;; esac
done
if [ "$1" = install ]; then
    mkdir -p "$venv/bin"
    cp "$FAKES/venv-python" "$venv/bin/python"
fi
case "make $*" in *"$FAILS"*) exit 2 ;; esac
"""
CHECKS = {"make lint", "make audit", "make docs"}
VENV_PYTHON = """#!/bin/sh
echo "$0 $*" >>"$SAID"
case "$0 $*" in *"$FAILS"*) exit 1 ;; esac
"""
PYTHON = f"""#!/bin/sh
case "$*" in *ensurepip*) exit 0 ;; esac
exec {sys.executable} "$@"
"""
NO_PYTHON = "#!/bin/sh\nexit 1\n"


def run(folder: Path, fails: str = "nothing of this name") -> tuple[int, list[str], str]:
    """Run CI in a folder and return the exit code, the commands it ran, and its output."""
    fakes = folder / "fakes"
    (folder / ".ci").mkdir()
    (folder / "scenarios").mkdir()
    fakes.mkdir()
    for name in ("run", "newest-python.txt"):
        shutil.copy(ROOT / ".ci" / name, folder / ".ci")
    programs = {"make": MAKE, "venv-python": VENV_PYTHON}
    programs |= {f"python{version}": PYTHON for version in ("3.11", "3.13")}
    programs |= {f"python{version}": NO_PYTHON for version in ("3.12", "3.14")}
    for name, text in programs.items():
        (fakes / name).write_text(text)
        (fakes / name).chmod(0o755)
    said = folder / "said"
    environment = {
        "PATH": f"{fakes}:/usr/bin:/bin",
        "HOME": os.environ.get("HOME", "/"),
        "STEERSMAN_SCENARIOS": str(folder / "scenarios"),
        "SAID": str(said),
        "FAKES": str(fakes),
        "FAILS": fails,
    }
    done = subprocess.run([folder / ".ci" / "run"], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, said.read_text().splitlines(), done.stdout + done.stderr


def test_every_step_is_taken_and_the_end_is_good(tmp_path: Path) -> None:
    code, said, output = run(tmp_path)
    assert code == 0, output
    asked = [line for line in said if "run_tests" in line or line.startswith("make test ")]
    assert [line.partition(" ")[0] for line in asked] == [
        "make",
        ".venv-3.13/bin/python",
        *[".venv/bin/python"] * 2,
    ]
    assert ["--watch-updates" in line for line in asked] == [True, False, False, False]
    assert " TESTS=tests " in asked[0], "all fast tests"
    assert "tests/net" in asked[1]
    assert "tests/registry" not in asked[1]
    assert "tests/conformance" in asked[3]
    assert not any("--short" in line for line in asked)
    assert sum(" install" in line and "3.13" in line for line in said) == 1
    assert {line for line in said if line in CHECKS} == CHECKS
    assert "s in all" in output


@pytest.mark.parametrize(
    "step",
    [
        "make lint",
        "make audit",
        "make docs",
        ".venv/bin/python -m pytest --collect",
        ".venv-3.13/bin/python -m pytest --collect",
        ".venv-3.13/bin/python -m tools",
        "--watch-updates",
        "--ignore tests/conformance",
        "--dist=load ",
    ],
)
def test_a_step_that_fails_fails_the_run(step: str, tmp_path: Path) -> None:
    code, said, output = run(tmp_path, fails=step)
    assert any(step in line for line in said), said
    assert code != 0
    assert "s in all" not in output
