"""Files of configuration: read whole, if they are files and no larger than they may be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steersman.machinery.private_files import MOST_OF_CONFIGURATION, read_bounded, temporary_file


def test_a_file_may_be_as_large_as_its_bound(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * MOST_OF_CONFIGURATION)
    assert len(read_bounded(file)) == MOST_OF_CONFIGURATION
    file.write_bytes(b"x" * (MOST_OF_CONFIGURATION + 1))
    with pytest.raises(OSError, match=f"is larger than {MOST_OF_CONFIGURATION} bytes$"):
        read_bounded(file)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"is not a file; a file is expected$"):
        read_bounded(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"is a folder; a file is expected$"):
        read_bounded(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "none")


def test_a_temporary_file_needs_no_folder_and_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    with temporary_file(b"key") as name:
        assert Path(name).read_bytes() == b"key"
    assert not Path(name).exists()


def test_a_temporary_file_is_made_in_a_folder_where_memory_has_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.memfd_create", raising=False)
    with temporary_file(b"key") as name:
        assert Path(name).read_bytes() == b"key"
    assert not Path(name).exists()
