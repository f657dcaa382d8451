"""Tests of the list of modules of tests and tools with relaxed type checks, which may only shrink."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator

from tests import ROOT

UNTYPED = 44
"""Modules in which functions may have no annotations. Lower the number when there are fewer."""
RELAXED = 218
"""Modules with disabled kinds of errors. Lower the number when there are fewer."""


def overrides() -> Iterator[tuple[list[str], bool]]:
    """Yield the modules of each of mypy's overrides for our own modules, and True if it allows missing annotations."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for override in project["tool"]["mypy"]["overrides"]:
        modules = [module for module in override["module"] if module.split(".")[0] in {"tests", "tools"}]
        if modules:
            yield modules, "disallow_untyped_defs" in override


def test_no_more_modules_are_relaxed() -> None:
    assert sum(len(modules) for modules, untyped in overrides() if untyped) <= UNTYPED
    assert sum(len(modules) for modules, untyped in overrides() if not untyped) <= RELAXED


def test_modules_are_named_one_by_one_and_are_there() -> None:
    listed = {module for modules, _ in overrides() for module in modules}
    paths = {module: ROOT.joinpath(*module.split(".")) for module in listed}
    gone = [
        module
        for module, path in paths.items()
        if not path.with_suffix(".py").is_file() and not (path / "__init__.py").is_file()
    ]
    assert gone == []


def test_no_module_is_named_twice_for_one_thing() -> None:
    for wanted in (True, False):
        named = Counter(module for modules, untyped in overrides() if untyped is wanted for module in modules)
        assert [module for module, times in named.items() if times > 1] == []
