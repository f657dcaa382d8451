"""Errors of the operating system in Go's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.machinery.go.os_errors import reason


def test_a_failed_call_is_told_without_its_name_and_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as found:
        (tmp_path / "none").read_bytes()
    assert reason(found.value) == "no such file or directory"


def test_an_error_of_this_program_is_told_as_it_is() -> None:
    assert reason(OSError("it is not a file")) == "it is not a file"
