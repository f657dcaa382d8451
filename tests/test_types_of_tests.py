"""Tests of the list of modules of tests and tools with relaxed type checks, which may only shrink."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests import ROOT

RELAXED = 1
"""Modules with disabled kinds of errors. Lower the number when there are fewer."""


def overrides() -> Iterator[dict[str, Any]]:
    """Yield mypy's overrides for our own modules, of which only these are in `module`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for override in project["tool"]["mypy"]["overrides"]:
        modules = [module for module in override["module"] if module.split(".")[0] in {"tests", "tools"}]
        if modules:
            yield {**override, "module": modules}


def test_no_more_modules_are_relaxed() -> None:
    assert sum(len(override["module"]) for override in overrides()) <= RELAXED


def test_only_kinds_of_errors_are_relaxed_and_every_function_has_annotations() -> None:
    assert {key for override in overrides() for key in override} == {"module", "disable_error_code"}
    assert not {code for override in overrides() for code in override["disable_error_code"] if "untyped-" in code} - {
        "untyped-decorator"
    }


def test_modules_are_named_one_by_one_and_are_there() -> None:
    listed = {module for override in overrides() for module in override["module"]}
    paths = {module: ROOT.joinpath(*module.split(".")) for module in listed}
    gone = [
        module
        for module, path in paths.items()
        if not path.with_suffix(".py").is_file() and not (path / "__init__.py").is_file()
    ]
    assert gone == []


def test_no_module_is_named_twice() -> None:
    named = Counter(module for override in overrides() for module in override["module"])
    assert [module for module, times in named.items() if times > 1] == []
