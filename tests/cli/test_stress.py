"""Arguments of `steersman stress`; tests/stress has whole searches."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from steersman.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "give --operator and --test, or a COMMAND after --"),
        (["--operator", "x"], "give --operator and --test, or a COMMAND after --"),
        (["--operator", "x", "--test", "y", "--", "z"], "give --operator and --test, or a COMMAND after --"),
        (["--kinds", "crush", "--", "z"], "no kind crush; known are closed, conflict, crash-after"),
        (["--kinds", "crash", "--", "z"], "--kinds: crashes need --operator and --test in place of a COMMAND"),
        (["--kinds", "crash,lost", "--", "z"], "--kinds: lost: needs --client, the name of the operator's program"),
        (["--junit", "missing/junit.xml", "--", "z"], "missing is no folder"),
        (["--time", "5", "--", "z"], "5"),
        (["--time", "-5m", "--", "z"], "-5m is negative"),
        (["--parralel", "2", "--", "z"], "unknown flag: --parralel, did you mean --parallel?"),
        (["--", "no-program", "-x"], "no-program: No such file or directory"),
        (["--plan", "no.yaml", "--", "z"], "no.yaml"),
        (["--manifests", "no.yaml", "--operator", "x", "--test", "y"], "no.yaml"),
    ],
)
def test_what_cannot_be_is_refused_with_2(
    arguments: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["stress", *arguments], prog_name="steersman")
    assert done.exit_code == 2
    assert why in done.stderr


def test_a_command_without_requests_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["stress", "--junit", "junit.xml", "--", "true"], prog_name="steersman")
    assert done.exit_code == 2
    assert "no verdict: no requests were seen" in done.stdout
    (failure,) = ElementTree.fromstring((tmp_path / "junit.xml").read_bytes()).iter("failure")
    assert str(failure.get("message")).startswith("no requests were seen")


def test_a_result_is_printed_also_if_its_files_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["stress", "--junit", str(tmp_path), "--", "true"], prog_name="steersman")
    assert done.exit_code == 2
    assert "nothing found: 0 faults tried" in done.stdout
    assert "Is a directory" in done.stderr
