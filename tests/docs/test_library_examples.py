"""What docs/library.md says of the library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import steersman
from tests.docs.markdown_documents import ROOT, Document

GUIDE = Document(ROOT / "docs" / "library.md")
EXAMPLES = GUIDE.blocks("python")[1:]
"""All but the program that serves, which tests/e2e/test_library.py runs."""


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_what_an_example_declares_has_a_definition(number: int, tmp_path: Path) -> None:
    program = f"""{EXAMPLES[number]}
import steersman
from steersman.library.checked import check_definition
from steersman.library.declaration import Declaration, declaration_of
declared = [each for each in list(globals().values()) if "__steersman_resource__" in getattr(each, "__dict__", ())]
assert declared
for each in declared:
    check_definition(declaration_of(each))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_name_that_is_public_is_told_of() -> None:
    assert [name for name in steersman.__all__ if f"`{name}`" not in GUIDE.text] == []


def test_every_public_name_is_there() -> None:
    assert [name for name in steersman.__all__ if not hasattr(steersman, name)] == []


def test_the_package_imports_nothing_before_it_is_asked() -> None:
    program = "import sys, steersman; print([each for each in sys.modules if each.startswith('steersman.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
