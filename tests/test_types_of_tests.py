"""Tests of mypy's settings: all modules of tests and tools are strict."""

from __future__ import annotations

import tomllib

from tests import ROOT


def test_no_module_of_tests_and_tools_is_relaxed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["strict"]
    assert {"tests", "tools"} <= {each.rpartition("/")[2] for each in settings["files"]}
    named = [module for override in settings["overrides"] for module in override["module"]]
    assert named != []
    assert [module for module in named if module.split(".")[0] in {"tests", "tools"}] == []
