"""`steersman replay`: its errors."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from steersman.cli.main import main
from steersman.dumps.recordings import change_line, header_line

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}


def test_an_end_before_the_beginning_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "day.rec"
    file.write_bytes(header_line() + change_line(1_800_000_000.0, "PRESENT", NODE))
    found = CliRunner().invoke(main, ["replay", str(file), "--until", "2020-01-01T00:00:00Z"])
    assert (found.exit_code, "--until: before the recording begins" in found.output) == (1, True)
