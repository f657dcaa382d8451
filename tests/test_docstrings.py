"""Tests of docstrings: they begin with words that a stranger understands, and every public name has one."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

from tests import ROOT

FOLDERS = ("src/steersman", "tools", "bench", "examples", "tests")
RIDDLES = re.compile(
    r"(What|Whether|How|Where|Who|Whom|Whose|Which|Those|That|The same|Of|(By|In|From|To|For|With) which|When)\b"
)
WITHOUT_THEIR_NOUN = re.compile(r"(As|Such)\b")
"""Openings of docstrings that tell of something else without its name."""
LIKELY = re.compile(rf"""^[ (]*[a-zA-Z]{{0,2}}["']+\s*({RIDDLES.pattern}|{WITHOUT_THEIR_NOUN.pattern})""", re.MULTILINE)
"""Text of a module that may have such a docstring: parsing all modules takes long."""
GENERATED = ROOT / "src/steersman/api"


def files(folder: str) -> list[Path]:
    return [each for each in sorted((ROOT / folder).rglob("*.py")) if not each.is_relative_to(GENERATED)]


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, its classes, functions and attributes, with their lines.

    A module without LIKELY text has none that the tests are about, and is not parsed.
    """
    source = file.read_text()
    if not LIKELY.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield statement.lineno, text.strip()


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_docstring_begins_with_a_riddle(folder: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for file in files(folder)
        for line, text in docstrings(file)
        if RIDDLES.match(text) or WITHOUT_THEIR_NOUN.match(text)
    ]
    assert found == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_comment_begins_with_a_riddle(folder: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files(folder)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if line.lstrip().startswith("# ") and RIDDLES.match(line.lstrip()[2:])
    ]
    assert found == []


def public_names(file: Path) -> Iterator[tuple[str, object]]:
    """Yield the public classes, functions and methods that a module of the package defines."""
    name = ".".join(file.relative_to(ROOT / "src").with_suffix("").parts)
    module = importlib.import_module(name.removesuffix(".__init__"))
    for own, value in vars(module).items():
        if own.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, (type, FunctionType)):
            yield f"{name}.{own}", value
        if isinstance(value, type):
            for method, inner in vars(value).items():
                if not method.startswith("_") and isinstance(
                    inner, (FunctionType, classmethod, staticmethod, property)
                ):
                    yield f"{name}.{own}.{method}", getattr(value, method)


def test_every_public_name_has_a_docstring() -> None:
    """A method may inherit the docstring of the method that it overrides."""
    found = [
        name
        for file in files("src/steersman")
        if file.name != "__main__.py"
        for name, value in public_names(file)
        if not inspect.getdoc(value)
    ]
    assert found == []
