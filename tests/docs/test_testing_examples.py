"""The examples of docs/testing.md run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown_documents import ROOT, Document

EXAMPLES = Document(ROOT / "docs" / "testing.md").blocks("python")


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLES[number]], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_name_that_is_public_is_told_of() -> None:
    from steersman import testing

    text = Document(ROOT / "docs" / "testing.md").text
    assert [name for name in testing.__all__ if name not in text] == []
