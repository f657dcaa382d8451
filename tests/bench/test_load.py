"""The load generator: its own tests, and what Go's tools say of it and of the reference."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests import ROOT

BENCH = ROOT / "bench"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("go") is None, reason="the load generator is built with Go"),
]


def go(*command: str) -> str:
    done = subprocess.run(command, cwd=BENCH / "load", capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_go_code_is_formatted() -> None:
    assert go("gofmt", "-l", ".", "../reference") == ""


def test_go_vet_finds_nothing() -> None:
    go("go", "vet", ".")


def test_its_own_tests_pass() -> None:
    go("go", "test", ".")
