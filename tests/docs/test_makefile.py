"""Tests of the Makefile: its error messages, and the tests that it runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.docs.markdown_documents import ROOT

_OF_MAKE = frozenset({"MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "TESTS", "RUN", "JOBS"})


def install(python: Path, venv: Path) -> subprocess.CompletedProcess[str]:
    """Run `make install` with this Python."""
    command = ["make", "install", f"PYTHON={python}", f"VENV={venv}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_an_older_python_is_told_with_the_one_that_is_needed(tmp_path: Path) -> None:
    old = tmp_path / "python3.10"
    old.write_text('#!/bin/sh\ncase $1 in --version) echo "Python 3.10.12";; *) exit 1;; esac\n')
    old.chmod(0o755)
    done = install(old, tmp_path / "venv")
    assert done.returncode != 0
    assert done.stderr.startswith(
        f"Steersman needs Python 3.11 or newer, and {old} is Python 3.10.12: name another, as in make install "
        "PYTHON=python3.12\n"
    )
    assert not (tmp_path / "venv").exists()


def test_a_python_that_there_is_not_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "python3.99"
    done = install(missing, tmp_path / "venv")
    assert done.returncode != 0
    assert done.stderr.startswith(
        f"Steersman needs Python 3.11 or newer, and there is no {missing}: name another, as in make install "
        "PYTHON=python3.12\n"
    )


@pytest.mark.parametrize(("given", "is_short"), [([], True), (["TESTS=tests"], False), (["TESTS=tests/net"], False)])
def test_only_tests_that_are_not_named_are_short(given: list[str], is_short: bool) -> None:
    # a make that runs the tests hands its own variables on
    environment = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    command = ["make", "-n", "test", *given]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if "tools.run_tests" in line)
    assert ("--short" in line) == is_short
    assert line.endswith(given[0].removeprefix("TESTS=") if given else " ")
