"""Tests of the list of tests that also run on the newest Python: it has every folder and file, with a reason."""

from __future__ import annotations

from collections import Counter

from tests import ROOT

LIST = ROOT / ".ci" / "newest-python.txt"


def lines() -> list[list[str]]:
    """Return every line of the list as three parts: yes or no, the folder or file, and the reason."""
    return [line.split(maxsplit=2) for line in LIST.read_text().splitlines() if not line.startswith("#")]


def test_every_folder_and_file_of_tests_has_one_line() -> None:
    tests = ROOT / "tests"
    found = [path for path in tests.iterdir() if any(path.glob("**/test_*.py")) or path.match("test_*.py")]
    assert Counter(place for _, place, _ in lines()) == Counter(str(path.relative_to(ROOT)) for path in found)


def test_every_line_says_whether_and_why() -> None:
    assert [line for line in lines() if len(line) != 3 or line[0] not in {"yes", "no"}] == []
