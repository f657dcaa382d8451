"""The committed page of `steersman inspect` is the one that its sources give."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import ROOT
from tools.inspector_page import PAGE, SOURCES, built, check, rebuild, write


def test_the_committed_page_is_of_the_committed_sources() -> None:
    assert check(ROOT) == ""
    assert "index.html" in {each.name for each in built(ROOT)}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the sources and of the page."""
    ignored = shutil.ignore_patterns("node_modules", "e2e")
    shutil.copytree(ROOT / SOURCES, tmp_path / SOURCES, ignore=ignored)
    shutil.copytree(ROOT / PAGE, tmp_path / PAGE)
    assert check(tmp_path) == ""
    return tmp_path


@pytest.mark.parametrize("name", ["src/main.tsx", "package-lock.json", "vite.config.ts", "index.html", "src/new.ts"])
def test_changed_sources_need_a_build(copy: Path, name: str) -> None:
    with (copy / SOURCES / name).open("a") as file:
        file.write("\n")
    assert check(copy) == "inspector has changed since the page was built: run `make inspector`"
    write(copy)
    assert check(copy) == ""


def test_tests_of_the_page_are_no_sources(copy: Path) -> None:
    (copy / SOURCES / "src" / "new.test.ts").write_text("x")
    (copy / SOURCES / "node_modules").mkdir()
    (copy / SOURCES / "node_modules" / "x.js").write_text("x")
    assert check(copy) == ""


@pytest.mark.parametrize("change", ["changed", "removed", "added"])
def test_a_changed_page_is_found(copy: Path, change: str) -> None:
    """A merge may take sources of one side and built files of the other."""
    (script,) = (copy / PAGE / "assets").glob("index-*.js")
    if change == "added":
        (script.parent / "index-other.js").write_text("x")
    elif change == "removed":
        script.unlink()
    else:
        script.write_text(script.read_text() + "\n")
    assert check(copy) == f"{PAGE} has changed since the page was built: run `make inspector`"


def test_a_page_without_digests_is_found(copy: Path) -> None:
    (copy / PAGE / "sources.sha256").unlink()
    assert check(copy).endswith("sources.sha256 is missing: run `make inspector`")


def test_without_node_a_reason_is_printed(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert rebuild(copy) == ""
    assert capsys.readouterr().out == "the page is not built again: there is no node\n"


@pytest.mark.slow
def test_a_new_build_gives_the_same_bytes(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rebuild(copy) == ""
    out = capsys.readouterr().out
    if "is not built again" in out:
        pytest.skip(out)
    assert "a new build has the same" in out
    (script,) = (copy / PAGE / "assets").glob("index-*.js")
    script.write_text(script.read_text() + "\n")
    assert rebuild(copy).endswith(f"{PAGE}/assets/{script.name}")
