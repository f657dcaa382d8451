"""Arguments of `steersman stress`; tests/stress has whole searches."""

from __future__ import annotations

from pathlib import Path

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
        (["--time", "5", "--", "z"], "5"),
        (["--time", "-5m", "--", "z"], "-5m is negative"),
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
