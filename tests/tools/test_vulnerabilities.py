"""Tests of the lock file: it has exactly the pinned and needed packages, with hashes, no index, and fitting licences."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib

from tests import ROOT
from tools.vulnerabilities import found_in

LOCK = (ROOT / "requirements.lock").read_text()
LOCKED = dict(re.findall(r"^([\w.-]+)==(\S+) (?:; .*)?\\$", LOCK, re.MULTILINE))
FITTING = ("Apache", "BSD", "MIT", "PSF", "Python Software Foundation", "MPL-2.0", "ISC")
"""Licences that a project under Apache-2.0 may depend on, by a part of their names."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_all_that_is_needed_is_locked_at_the_version_that_is_pinned() -> None:
    pins = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    pinned = {canonical(name): version for name, version in pins}
    assert {name: pinned.get(canonical(name)) for name in LOCKED} == LOCKED
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {canonical(re.split(r"[<>=~\[; ]", each)[0]) for each in needed}
    assert names - {canonical(name) for name in LOCKED} == set(), "run `make lock`"


def test_every_file_is_known_by_its_hash_and_no_host_is_named() -> None:
    for part in re.split(r"(?m)^(?=[\w.-]+==)", LOCK)[1:]:
        assert re.search(r"^    --hash=sha256:[0-9a-f]{64}", part, re.MULTILINE), part[:40]
    assert not re.search(r"https?:|--(extra-)?index|--find-links|--trusted-host|/\w+/", LOCK)


def test_licences_fit() -> None:
    astray = {}
    for name in LOCKED:
        try:
            found = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # of another version of Python
        told = [*found.get_all("License-Expression", []), *(each[:200] for each in found.get_all("License", []))]
        told += [each for each in found.get_all("Classifier") or () if each.startswith("License ::")]
        if not any(fitting in each for each in told for fitting in FITTING):
            astray[name] = told
    assert astray == {}


def test_what_is_known_and_what_was_not_looked_at_is_told() -> None:
    report = {
        "dependencies": [
            {"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}, {"id": "CVE-2"}]},
            {"name": "b", "version": "2", "vulns": []},
            {"name": "c", "skip_reason": "not on the index"},
        ]
    }
    found = found_in(report)
    assert (found.looked_at, found.known, found.skipped) == (2, ("a 1: CVE-1, CVE-2",), ("not on the index",))
    assert "1 packages NOT looked at: not on the index" in found.text
