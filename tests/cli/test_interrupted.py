"""Interrupts while the program's modules are imported."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys

class Interrupts:
    def find_spec(self, name, *_):
        if name == "steersman.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
import steersman.cli
"""


def test_it_ends_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
