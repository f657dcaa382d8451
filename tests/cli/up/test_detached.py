"""Detached clusters: until ready, the process belongs to the command that waits for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, sys
from pathlib import Path
from steersman.cli.up.detached import detach
from steersman.cli.up.process_file import claim, running

def starts_for_ever(_):
    os.kill(os.getppid(), signal.SIGINT)
    while True:
        signal.pause()

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background inherit that it is ignored
folder = Path(sys.argv[1])
claimed = claim(folder)
try:
    with claimed:
        detach(folder, claimed, starts_for_ever)
except KeyboardInterrupt:
    print(running(folder))
"""


def test_an_interrupt_ends_the_start_that_is_waited_for(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")
