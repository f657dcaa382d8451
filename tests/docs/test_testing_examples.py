"""The examples of docs/testing.md run as they stand."""

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
EXAMPLES = DOCUMENT.blocks("python")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    """An example is run as a program, or with pytest if its first line names a file of tests."""
    for block in DOCUMENT.blocks("yaml"):
        path = tmp_path / block.partition("\n")[0].removeprefix("# ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(block)
    arguments = ["-c", EXAMPLES[number]]
    named = re.match(r"# (test_\w+\.py)\n", EXAMPLES[number])
    if named is not None:
        (tmp_path / named[1]).write_text(EXAMPLES[number])
        arguments = ["-m", "pytest", "--strict-markers", "-p", "no:asyncio", "-W", "error"]
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.slow
def test_the_example_in_go_runs(tmp_path: Path) -> None:
    """The example runs in the module of the end-to-end tests, which has its dependencies."""
    go = find_go()
    if go is None:
        pytest.skip("no Go on this machine: put it in PATH, or name it in $GO")
    for name in ("go.mod", "go.sum"):
        shutil.copy(ROOT / "tests" / "e2e" / "envtest" / name, tmp_path)
    (example,) = DOCUMENT.blocks("go")
    (tmp_path / "rollout_test.go").write_text(example)
    programs = assets.make(tmp_path / "home", 1)
    done = subprocess.run(
        [go, "test", "-count=1", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "KUBEBUILDER_ASSETS": str(programs)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_example_in_java_runs(tmp_path: Path) -> None:
    """The example runs in an otherwise empty Maven project."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("no Maven on this machine")
    tests = tmp_path / "src" / "test" / "java"
    tests.mkdir(parents=True)
    shutil.copy(Path(__file__).parent / "java" / "pom.xml", tmp_path)
    (example,) = DOCUMENT.blocks("java")
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

    text = Document(ROOT / "docs" / "testing.md").text
    assert [name for name in testing.__all__ if name not in text] == []
