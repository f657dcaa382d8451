"""Programs in Go that tests build and run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

DOWNLOAD_TIMEOUT = 300.0
BUILD_TIMEOUT = 900.0


def find_go() -> str | None:
    """Return Go from $GO, from PATH, or from its usual installation folder; None if there is none."""
    for candidate in (os.environ.get("GO"), "go", "/usr/local/go/bin/go"):
        found = shutil.which(candidate) if candidate else None
        if found:
            return found
    return None


def build(source: Path, made: Path) -> Path:
    """Build a module's program and return its path. Skips the test without Go or without the module's dependencies.

    Go caches compiled packages, so that only the first build takes minutes.
    """
    return _compile(source, made, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", str(made), ".")


def build_tests(source: Path, package: str, made: Path) -> Path:
    """Build the tests of a module's package as a program and return its path. Skips the test in the cases of `build`."""
    return _compile(source, made, "test", "-c", "-ldflags=-s -w", "-o", str(made), package)


def _compile(source: Path, made: Path, *arguments: str) -> Path:
    go = find_go()
    if go is None:
        pytest.skip("no Go on this machine: put it in PATH, or name it in $GO")
    environment = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}

    def run(*arguments: str, timeout: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [go, *arguments], cwd=source, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )

    try:
        downloaded = run("mod", "download", timeout=DOWNLOAD_TIMEOUT)
    except subprocess.TimeoutExpired:
        pytest.skip(f"the modules of {source.name}/go.mod were not downloaded within {DOWNLOAD_TIMEOUT:.0f} s")
    if downloaded.returncode != 0:
        *_, why = downloaded.stderr.strip().splitlines() or ["it does not say why"]
        pytest.skip(f"the modules of {source.name}/go.mod cannot be had: {why}")
    compiled = run(*arguments, timeout=BUILD_TIMEOUT)
    assert compiled.returncode == 0, compiled.stderr
    return made
