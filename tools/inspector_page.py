#!/usr/bin/env python3
"""Compare the built page of `steersman inspect` with its sources.

    python -m tools.inspector_page check      # digests only; needs no Node.js
    python -m tools.inspector_page rebuild    # build again and compare the files
    python -m tools.inspector_page write      # note the digests of a new build, as `make inspector` does

The page is built from `inspector/` by Node.js and is committed, so that an installation needs no Node.js. The file
`sources.sha256` beside it has a digest of the sources and one of the built files. `rebuild` prints a reason and ends
with 0 where Node.js or npm's packages are missing. All commands end with 1 if the page is not that of the sources.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = "inspector"
PAGE = "src/steersman/inspector/page"
DIGESTS = "sources.sha256"
_BUILT_FROM = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "public", "src")
_TEST = re.compile(r"\.test\.tsx?$")


def sources(root: Path) -> list[Path]:
    """Return the files that a build reads, without tests."""
    folder = root / SOURCES
    found = [each for name in _BUILT_FROM for each in (folder / name, *(folder / name).rglob("*")) if each.is_file()]
    return [each for each in found if not _TEST.search(each.name)]


def built(root: Path) -> list[Path]:
    """Return the files of the built page."""
    return [each for each in (root / PAGE).rglob("*") if each.is_file() and each.name != DIGESTS]


def digest(files: Iterable[Path], folder: Path) -> str:
    """Return the SHA-256 of the paths and contents of files below `folder`."""
    found = hashlib.sha256()
    for name, file in sorted((each.relative_to(folder).as_posix(), each) for each in files):
        content = file.read_bytes()
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def digests(root: Path) -> str:
    """Return the text of `sources.sha256` for the files in a checkout."""
    rows = ((digest(sources(root), root), SOURCES), (digest(built(root), root), PAGE))
    return "".join(f"{value}  {name}\n" for value, name in rows)


def write(root: Path) -> None:
    """Write `sources.sha256`."""
    (root / PAGE / DIGESTS).write_text(digests(root))


def check(root: Path) -> str:
    """Return the reason why the page is not that of the sources, "" if it is."""
    noted = root / PAGE / DIGESTS
    if not noted.exists():
        return f"{PAGE}/{DIGESTS} is missing: run `make inspector`"
    for now, before in zip(digests(root).splitlines(), noted.read_text().splitlines(), strict=True):
        if now != before:
            return f"{now.rpartition(' ')[2]} has changed since the page was built: run `make inspector`"
    return ""


def rebuild(root: Path) -> str:
    """Build the page again in another folder and return the reason why it differs, "" if it is equal.

    Prints a reason and returns "" where it cannot be built.
    """
    if (reason := _missing_node(root)) or (npm := shutil.which("npm")) is None:
        print(f"the page is not built again: {reason or 'there is no npm'}")
        return ""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        ignored = shutil.ignore_patterns("node_modules", "e2e")
        shutil.copytree(root / SOURCES, copy / SOURCES, ignore=ignored)
        install = [npm, "ci", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"]
        installed = subprocess.run(install, cwd=copy / SOURCES, capture_output=True, text=True)
        if installed.returncode:
            print(f"the page is not built again: npm's packages are not there\n{installed.stderr[-2000:]}")
            return ""
        done = subprocess.run([npm, "run", "build"], cwd=copy / SOURCES, capture_output=True, text=True)
        if done.returncode:
            return f"the page cannot be built: {(done.stdout + done.stderr)[-4000:]}"
        found = {each.relative_to(copy): each.read_bytes() for each in built(copy)}
    committed = {each.relative_to(root): each.read_bytes() for each in built(root)}
    differing = sorted(str(each) for each in found.keys() | committed if found.get(each) != committed.get(each))
    if differing:
        return "\n".join(("a new build differs from the committed page: run `make inspector`", *differing))
    print(f"a new build has the same {len(found)} files, {sum(map(len, found.values()))} bytes")
    return ""


def _missing_node(root: Path) -> str:
    """Return the reason why the Node.js here cannot build the page, "" if it can."""
    node = shutil.which("node")
    if node is None:
        return "there is no node"
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip().removeprefix("v")
    needed = json.loads((root / SOURCES / "package.json").read_text())["engines"]["node"].removeprefix(">=")
    if [int(each) for each in version.split(".")[:2]] < [int(each) for each in needed.split(".")[:2]]:
        return f"Node.js is {version}, and the build needs {needed} or later"
    return ""


def main() -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(description="Compare the built page of `steersman inspect` with its sources.")
    parser.add_argument("command", choices=["check", "rebuild", "write"])
    command = parser.parse_args().command
    if command == "write":
        write(ROOT)
        return 0
    problem = check(ROOT) or (rebuild(ROOT) if command == "rebuild" else "")
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
