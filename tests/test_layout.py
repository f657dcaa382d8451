"""Tests of the layout: tests are packages that mirror the sources, in folders of the same paths."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests import ROOT

TESTS = ROOT / "tests"
MIRRORED = {"bench": ROOT / "bench", "examples": ROOT / "examples", "tools": ROOT / "tools"}
"""Folders of tests of code outside of `src`."""
OF_THE_WHOLE = {"conformance", "deploy", "docs", "e2e"}
"""Folders of tests of whole servers and of documents."""
ASTRAY = re.compile(r"from tests\S*\.(?:test_|conftest)")
"""Imports that are not allowed."""


def folders() -> Iterator[Path]:
    """Yield every folder of tests that has Python files, from `tests` on."""
    for folder in sorted({path.parent for path in TESTS.rglob("*.py")}):
        if folder != TESTS:
            yield folder.relative_to(TESTS)


def modules() -> Iterator[Path]:
    """Yield every Python file of tests, tools, bench and `steersman.testing`."""
    for folder in (TESTS, ROOT / "tools", ROOT / "bench", ROOT / "src" / "steersman" / "testing"):
        yield from sorted(folder.rglob("*.py"))


def test_every_folder_of_tests_has_a_folder_of_sources() -> None:
    astray = []
    for folder in folders():
        first, *rest = folder.parts
        if first in OF_THE_WHOLE:
            continue
        source = MIRRORED.get(first, ROOT / "src" / "steersman" / first)
        if not source.joinpath(*rest).is_dir():
            astray.append(str(folder))
    assert astray == []


def test_every_folder_of_tests_is_a_package() -> None:
    assert [str(each) for each in folders() if not (TESTS / each / "__init__.py").is_file()] == []


def test_no_test_repeats_the_name_of_its_folder_before_its_own() -> None:
    """`tests/store/test_store_create.py` must be `tests/store/test_create.py`."""
    repeated = [
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("test_*.py")
        if path.stem.startswith(f"test_{path.parent.name}_") and path.parent.name not in OF_THE_WHOLE
    ]
    assert repeated == []


def test_modules_are_imported_by_their_names_from_the_root() -> None:
    """No module changes `sys.path`, and no test module is imported by another one: shared code has modules of its own."""
    found = []
    for path in modules():
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "sys.path" in text or ASTRAY.search(text) else ():
            if isinstance(node, ast.Attribute) and node.attr == "path" and ast.unparse(node) == "sys.path":
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: sys.path")
            elif isinstance(node, ast.ImportFrom) and path.is_relative_to(TESTS):
                names = (node.module or "").split(".")
                if names[0] == "tests" and (names[-1].startswith("test_") or names[-1] == "conftest"):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.module}")
    assert found == []
