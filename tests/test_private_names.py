"""Tests of the number of private names that tests use, which may only fall."""

from __future__ import annotations

import pytest

from tests import ROOT, private_names

READ = 67
"""Private names that tests import, or read from other modules' objects. Lower the number when there are fewer."""
PATCHED = 7
"""Private names that tests replace. Lower the number when there are fewer."""


def everywhere() -> list[str]:
    """Return the text of every module of tests."""
    return [path.read_text() for path in sorted((ROOT / "tests").rglob("*.py"))]


def test_no_more_private_names_are_read_or_replaced() -> None:
    found = [(list(private_names.read(text)), list(private_names.patched(text))) for text in everywhere()]
    assert sum(len(read) for read, _ in found) <= READ
    assert sum(len(patched) for _, patched in found) <= PATCHED


@pytest.mark.parametrize(
    "text",
    ["from steersman.net.time_slices import _work", "def test(turns):\n    turns._work()", "print(make().turns._left)"],
)
def test_what_reads_a_private_name_is_found(text: str) -> None:
    assert len(list(private_names.read(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from steersman.net.time_slices import Turns as _Turns",
        "class Other:\n    def __init__(self):\n        self._left = 1\ndef test():\n    assert Other()._left",
        "def test(turns):\n    turns.__class__",
        "from tests.net import _work",
    ],
)
def test_names_of_the_tests_themselves_are_none(text: str) -> None:
    assert list(private_names.read(text)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('patch.setattr("steersman.net.time_slices._SLICE", 1)', 1),
        ('patch.setattr(turns, "_SLICE", 1)', 1),
        ('patch.setattr("steersman.net.time_slices.SLICE", 1)', 0),
        ('patch.setattr(turns, "name", "_value")', 0),
    ],
)
def test_what_replaces_a_private_name_is_found(text: str, found: int) -> None:
    assert len(list(private_names.patched(text))) == found
