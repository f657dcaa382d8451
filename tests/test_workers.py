"""Tests in several processes: what each of them says is said once, by the first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests import ROOT

FILES = {
    "conftest.py": "import os, pytest\n@pytest.fixture(scope='session')\ndef process(): return os.getpid()\n",
    "test_a.py": "import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_passes(process, n): pass\n",
    "test_b.py": "def test_fails(process):\n    print('said')\n    assert process == 0\n",
    "test_c.py": "import no_such_module\n",
    "below/test_d.py": "import pytest\n@pytest.mark.skip\ndef test_skipped(): pass\n",
}
ENDS_AT_ONCE = "import os\ndef test_before(): pass\ndef test_that_is_the_end(): os._exit(7)\n"


def run(folder: Path, files: dict[str, str], *flags: str) -> tuple[int, str]:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.workers", "-p", "no:asyncio", "--workers", "2", *flags]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_all_is_told_once(tmp_path: Path) -> None:
    code, told = run(tmp_path, FILES, "-k", "not [2]")
    assert code == 1
    assert re.search(r"= 1 failed, 2 passed, 1 skipped, 1 deselected, 1 error in ", told), told
    assert told.count("FAILED test_b.py::test_fails") == told.count("ERROR test_c.py") == 1
    assert "said" in told


def test_a_worker_that_ends_in_the_middle_is_a_failure(tmp_path: Path) -> None:
    code, told = run(tmp_path, {"test_a.py": FILES["test_a.py"].replace("process, ", ""), "test_b.py": ENDS_AT_ONCE})
    assert code == 1
    assert "a worker ended with 7; its last test: test_b.py::test_that_is_the_end" in told
    assert "4 passed" in told
