"""Which process a cluster is, as its file tells."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from steersman.cli.up.process_file import Running, claim, running


def test_somebody_else_who_looks_is_not_taken_for_a_cluster(tmp_path: Path) -> None:
    ended = claim(tmp_path)
    assert ended is not None
    ended.close()
    with (tmp_path / "up.pid").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # a look that is under way
        assert running(tmp_path) is None


def test_a_cluster_is_found_however_many_look(tmp_path: Path) -> None:
    with claim(tmp_path) as file:
        first = running(tmp_path)
        assert isinstance(first, Running)
        assert running(tmp_path) == first
        assert claim(tmp_path) is None
        assert os.fstat(file.fileno()).st_mtime == first.since
