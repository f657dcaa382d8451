"""Tests of the tool that counts the calls and files on the way of a request, with upper bounds."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from tests import ROOT

MOST: Final = {
    "GET": (69, 29),
    "POST": (229, 88),
    "PUT": (279, 91),
    "apply": (349, 105),
    "PUT with a watcher": (318, 99),
}
"""Most calls and files of the package on the way of each kind of request. Bounds are lowered; a
raise needs a reason, such as the steps of a traced request (`endpoints/spans.py`, `tracing/trace.py`), or the labels of a
namespace that PodSecurity reads when it decides, because a webhook may have waited since the write arrived.
"""


def test_the_path_of_a_request_is_counted_and_is_short() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.request_path", "--files"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    table, _, files = done.stdout.partition("\n\n")
    cells = [[each.strip() for each in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    rows = {name: (int(calls), int(files), int(changes)) for name, calls, files, changes in cells}
    assert rows.keys() == MOST.keys()
    for name, (calls, in_files, changes) in rows.items():
        assert 20 < in_files <= MOST[name][1], name
        assert in_files <= changes < calls <= MOST[name][0], name
    assert "endpoints/handlers/get.py" in files
    assert "endpoints/handlers/apply.py" in files
