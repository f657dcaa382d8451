"""Recordings as replays need them."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.cluster.replaying import recorded
from steersman.cluster.replaying.recorded import load_recorded
from steersman.dumps.errors import DumpError
from steersman.dumps.recordings import change_line, header_line


def test_the_beginning_of_a_recording_is_bounded_and_the_rest_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beginning is kept in memory, as a dump is; later changes are read one by one."""
    monkeypatch.setattr(recorded, "MOST_BYTES", 1 << 20)
    objects = [
        {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": f"c{number}"}, "data": {"a": "b" * 400_000}}
        for number in range(4)
    ]
    file = tmp_path / "day.rec"
    later = [change_line(float(at), "ADDED", each) for at, each in enumerate(objects)]
    file.write_bytes(header_line() + change_line(0.0, "PRESENT", objects[0]) + b"".join(later))
    assert [each.name for each in load_recorded(file).beginning.objects] == ["c0"]
    file.write_bytes(header_line() + b"".join(change_line(1.0, "PRESENT", each) for each in objects))
    with pytest.raises(DumpError, match="more than 1 MiB of objects at the beginning"):
        load_recorded(file)
