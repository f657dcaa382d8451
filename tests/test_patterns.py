"""Tests that every pattern of the package takes time in proportion to the text, whoever wrote the text.

Patterns of users are not covered: RE2 runs them.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

import steersman
from tests import patterns

assert steersman.__file__ is not None
SOURCES = Path(steersman.__file__).parent
USES = {"compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
LATE = "late_pattern"
FROM_ANY_PLACE = {"search", "findall", "finditer", "sub", "subn", "split"}
AT_RUN_TIME = {
    "endpoints/proxy/rewriting.py": "names of elements that stand in this file",
    "machinery/go/printable.py": "characters of a table",
    "machinery/validation/formats.py": "`_whole`, which is called with the patterns of this file",
    "nodes/shell/text_programs.py": "the set of characters of `tr -s`, escaped: runs of one of them",
    "nodes/stages/sprig/moments.py": "parts of a table, and the rest of a layout of at most 200 characters, escaped",
    "schema/formats.py": "`_matching`, which is called with the patterns of this file",
    "work/patterns.py": "patterns that modules declare by `late_pattern`, which are noted where they stand",
}
"""Files that build a pattern at run time, with the reason."""
OF_OUR_OWN_TEXT = {
    "openapi.descriptions": "the text of the package that descriptions come from",
}
"""Modules with patterns that never search a client's text."""
LENGTH = 12_000
"""Characters of the longer text. For so many, quadratic work takes at least 50 ms and linear work 2 ms."""
MUCH = 0.02
STEEP = 8.0
"""Largest ratio of the times for a text and for one of four times its length: 4 is linear, 16 is quadratic."""


def import_all() -> None:
    for module in pkgutil.walk_packages(steersman.__path__, "steersman."):
        if not module.name.startswith("steersman.api.") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def calls_of_re() -> tuple[tuple[Path, ast.Call, bool], ...]:
    """Return every call of `re` in the package: its file, the call, and True if it is inside a function."""
    found: list[tuple[Path, ast.Call, bool]] = []

    def walk(file: Path, node: ast.AST, is_within: bool) -> None:
        if isinstance(node, ast.Call) and node.args:
            called = node.func
            of_re = isinstance(called, ast.Attribute) and called.attr in USES and ast.unparse(called.value) == "re"
            if of_re or ast.unparse(called) == LATE:
                found.append((file, node, is_within))
        is_within = is_within or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.iter_child_nodes(node):
            walk(file, inner, is_within)

    for file in sorted(SOURCES.rglob("*.py")):
        text = file.read_text()
        if file.relative_to(SOURCES).parts[0] != "api" and ("re." in text or LATE in text):
            walk(file, tree_of(file), is_within=False)
    return tuple(found)


def collected() -> dict[tuple[str | bytes, int], str]:
    """Return every pattern and its place: patterns that modules compile, and those in functions that have not run."""
    import_all()
    found = dict(patterns.compiled)
    for file, call, is_within in calls_of_re():
        if is_within and isinstance(call.args[0], ast.Constant):
            pattern = call.args[0].value
            assert isinstance(pattern, str | bytes)
            place = ".".join(file.relative_to(SOURCES).with_suffix("").parts)
            flags = re.ASCII if "re.ASCII" in ast.unparse(call) and isinstance(pattern, str) else 0
            found.setdefault((pattern, int(flags)), f"{place}:{call.lineno}")
    return found


@pytest.mark.slow
def test_no_pattern_repeats_what_repeats_in_more_than_one_way() -> None:
    found = {place: (pattern, patterns.multiplies(pattern, flags)) for (pattern, flags), place in collected().items()}
    assert len(found) > 200
    assert {place: each for place, each in found.items() if each[1]} == {}


@pytest.mark.slow
def test_patterns_are_made_of_texts_that_stand_there() -> None:
    """Patterns that are built at run time could contain a client's text, which only RE2 (`cel.regular`) may run."""
    made = {
        str(file.relative_to(SOURCES))
        for file, call, is_within in calls_of_re()
        if is_within and not isinstance(call.args[0], ast.Constant)
    }
    assert made == set(AT_RUN_TIME)


@pytest.mark.parametrize(
    "pattern",
    [
        r"[+-]?0x(?:_?[0-9a-f]+)*p",
        "(a+)+b",
        "(a|a)*b",
        "(a|ab|b)*c",
        "(a*)*b",
        "(?:a*b*)*c",
        "(x+x+)+y",
        "(a?b?)*c",
        "(?:a{1,61})*b",
        "(?:(?:ab)+|a|b)*c",
        "a(?=(b+)+c)",
        r"(?:\w|ab?)*;",
    ],
)
def test_what_repeats_in_two_ways_is_found(pattern: str) -> None:
    assert patterns.multiplies(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "a*a*b",
        "(?:a++)*b",
        "(?:a+b)*c",
        "[a-z](?:[-a-z]{0,61}[a-z])?",
        r'(?:[^"\\]|\\.)*"',
        "(?:ab|ac)*d",
        "(?:a|b)*c",
        "(?:a{2}b)*c",
        r"\$(?:\$[0-9]{1,3}(?:, ?)?)+",
    ],
)
def test_what_repeats_in_one_way_is_let_be(pattern: str) -> None:
    assert not patterns.multiplies(pattern)


def is_searched(place: str) -> bool:
    """Return True if a pattern is searched for anywhere in a text, judging by the uses of its name in its module."""
    module, _, line = place.rpartition(":")
    file = SOURCES.joinpath(*module.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno <= int(line) <= (node.end_lineno or 0):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            used = {
                each.attr
                for each in ast.walk(tree_of(file))
                if isinstance(each, ast.Attribute) and ast.unparse(each.value) == ast.unparse(target)
            }
            bound = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
            return not (used | bound) & USES - {"compile"} or bool((used | bound) & FROM_ANY_PLACE)
    call = next((each for of, each, _ in calls_of_re() if of == file and each.lineno == int(line)), None)
    if call is not None and isinstance(call.func, ast.Attribute) and call.func.attr != "compile":
        return call.func.attr in FROM_ANY_PLACE
    return not ast.unparse(tree_of(file)).count(").fullmatch")


def seconds(found: re.Pattern[Any], use: str, text: Any) -> float:
    began = thread_time()
    if use == "finditer":
        for _ in found.finditer(text):
            pass
    else:
        getattr(found, use)(text)
    return thread_time() - began


def is_slow(pattern: str | bytes, flags: int, use: str, before: str, again: str, behind: str) -> bool:
    """Return True if a text of many repetitions takes too long, in each of three tries."""
    found = re.compile(pattern, flags)
    many = LENGTH // len(again)

    def text(times: int) -> Any:
        whole = before + again * times + behind
        return whole.encode("latin-1", "replace") if isinstance(pattern, bytes) else whole

    for _ in range(3):
        few = seconds(found, use, text(many // 4))
        if few < MUCH / STEEP or seconds(found, use, text(many)) <= max(MUCH, STEEP * few):
            return False
    return True


def slow_uses(found: dict[tuple[str | bytes, int], str]) -> list[tuple[str, str, str]]:
    slow = []
    for (pattern, flags), place in found.items():
        uses = ["fullmatch", "match"] + ["finditer"] * is_searched(place)
        for before, again in patterns.pumps(pattern, flags):
            for behind in ("", "\0", "!"):
                slow += [(place, use, again) for use in uses if is_slow(pattern, flags, use, before, again, behind)]
    return slow


@pytest.mark.slow
def test_every_pattern_takes_time_in_proportion_to_the_text() -> None:
    """Each pattern is fed with text that it repeats, between a beginning that it accepts and an end that it rejects."""
    found = collected()
    ours = {key: place for key, place in found.items() if place.partition(":")[0] not in OF_OUR_OWN_TEXT}
    assert slow_uses(ours) == []


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["([0-9]+)[ \t]*([A-Za-z]+)", r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"])
def test_what_takes_longer_is_found(pattern: str) -> None:
    assert any(
        is_slow(pattern, 0, use, before, again, "!")
        for before, again in patterns.pumps(pattern)
        for use in ("fullmatch", "finditer")
    )
