"""What the tool finds in a module, and what it leaves of a run."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tools.envtest_suites.command import end_all_that_use, suites


def test_packages_whose_tests_start_a_control_plane_are_found(tmp_path: Path) -> None:
    for name, text in (
        ("pkg/client/client_suite_test.go", "testenv = &envtest.Environment{}"),
        ("pkg/envtest/envtest_suite_test.go", "env = &Environment{}"),
        ("pkg/log/log_test.go", "nothing"),
        ("pkg/other/other.go", "env = &envtest.Environment{}"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert suites(tmp_path) == ["pkg/client", "pkg/envtest"]


def test_programs_that_a_suite_left_are_ended_and_no_others(tmp_path: Path) -> None:
    program = "print(flush=True); import time; time.sleep(600)"
    left, other = (
        subprocess.Popen([sys.executable, "-c", program, f"--data-dir={folder}/etcd"], stdout=subprocess.PIPE)
        for folder in (tmp_path / "run-1", tmp_path / "elsewhere")
    )
    with left, other:
        for each in (left, other):
            assert each.stdout is not None
            each.stdout.readline()
        end_all_that_use(str(tmp_path / "run-1"))
        assert left.wait(30) == -signal.SIGKILL
        assert other.poll() is None
        other.kill()
