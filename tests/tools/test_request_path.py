"""The tool that counts how far requests travel."""

from __future__ import annotations

import subprocess
import sys

from tests import ROOT


def test_the_path_of_a_get_is_counted_and_is_short() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.request_path", "--only", "GET", "--files"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    row = next(line for line in done.stdout.splitlines() if line.startswith("| GET"))
    calls, files, changes = (int(each) for each in row.split("|")[2:5])
    assert 20 < files < 60
    assert files <= changes < calls < 150
    assert "endpoints/handlers/get.py" in done.stdout
    assert "POST" not in done.stdout
