"""The examples of the pages about tests in Python, Go and Java run as they are printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.cli.envtest import assets
from tests.docs.markdown_documents import ROOT, Document
from tests.e2e.go_programs import find_go

DOCUMENT = Document(ROOT / "docs" / "testing.md")
GO = Document(ROOT / "docs" / "envtest.md")
JAVA = Document(ROOT / "docs" / "test-java-rust.md")
EXAMPLES = [
    *Document(ROOT / "docs" / "report.md").blocks("python"),
    *Document(ROOT / "docs" / "many-clusters.md").blocks("python"),
    *Document(ROOT / "docs" / "strategies.md").blocks("python"),
    *DOCUMENT.blocks("python"),
    *("# test_readme.py\n" + each for each in Document(ROOT / "README.md").blocks("python")),
]
WARNS = re.compile(r"from (kopf|kr8s)\b")
"""Imports of packages that warn of their own connections, or of a new version of Kubernetes."""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    """An example is run as a program, or with pytest if its first line names a file of tests.

    All files that the page names are beside it.
    """
    page = Document(ROOT / "docs" / "strategies.md")
    beside = page.blocks("yaml") + page.blocks("python") if EXAMPLES[number] in page.blocks("python") else []
    for block in (*DOCUMENT.blocks("yaml"), *EXAMPLES, *beside):
        if (named := re.match(r"# ([\w/]+\.\w+)\n", block)) is not None:
            path = tmp_path / named[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(block)
    arguments = ["-c", EXAMPLES[number]]
    if (test := re.match(r"# (test_\w+\.py)\n", EXAMPLES[number])) is not None:
        strict = [] if WARNS.search(EXAMPLES[number]) else ["-W", "error"]
        arguments = ["-m", "pytest", "--strict-markers", "-p", "no:asyncio", *strict, test[1]]
    # CI selects hypothesis' profile without checks of speed: another process may slow an example down.
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env={**os.environ, "CI": "true"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.slow
def test_the_example_in_go_runs_by_the_make_target(tmp_path: Path) -> None:
    """The example runs in a module with the dependencies of the end-to-end tests, and with pods, which it needs."""
    go, make = find_go(), shutil.which("make")
    if go is None or make is None:
        pytest.skip("no Go, or no make, on this machine: put it in PATH, or name it in $GO")
    module = ROOT / "tests" / "e2e" / "envtest"
    shutil.copy(module / "go.sum", tmp_path)
    # The target leaves out packages whose path has /e2e.
    (tmp_path / "go.mod").write_text(re.sub(r"^module .*", "module example", (module / "go.mod").read_text()))
    (example,) = GO.blocks("go")
    (tmp_path / "rollout_test.go").write_text(example)
    (target,) = GO.blocks("makefile")
    assert "$(shell steersman envtest)" in target
    target = target.replace("steersman envtest", "steersman envtest --cluster")
    (tmp_path / "Makefile").write_text(f"{target}\nmanifests generate fmt vet:\n")
    path = os.pathsep.join([os.path.dirname(sys.executable), os.path.dirname(go), os.environ["PATH"]])
    done = subprocess.run(
        [make, "test"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "TEST_ASSET_"))},
            "GOTOOLCHAIN": "local",
            "CGO_ENABLED": "0",
            "PATH": path,
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "GOCACHE": _go_cache(go),
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ok\s+example\b", done.stdout, re.MULTILINE), done.stdout


def _go_cache(go: str) -> str:
    """Return Go's own cache, which is in the user's cache folder unless it is named."""
    return subprocess.run([go, "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_the_example_in_java_runs(tmp_path: Path) -> None:
    """The example runs in an otherwise empty Maven project."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("no Maven on this machine")
    tests = tmp_path / "src" / "test" / "java"
    tests.mkdir(parents=True)
    shutil.copy(Path(__file__).parent / "java" / "pom.xml", tmp_path)
    (example,) = JAVA.blocks("java")
    (tests / "RolloutTest.java").write_text(example)
    programs = assets.make(tmp_path / "home", 1)
    done = subprocess.run(
        [maven, "-q", "-B", "test"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "KUBE_API_TEST_DIR": str(programs.parents[1])},
    )
    if "Could not resolve dependencies" in done.stdout or "could not be resolved" in done.stdout:
        pytest.skip("Maven gets no packages here")
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = (tmp_path / "target" / "surefire-reports").glob("*.txt")
    assert "Tests run: 1, Failures: 0, Errors: 0, Skipped: 0" in report.read_text()


def test_every_name_that_is_public_is_told_of() -> None:
    from steersman import testing

    assert [name for name in testing.__all__ if name not in DOCUMENT.text] == []
