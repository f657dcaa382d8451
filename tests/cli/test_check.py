"""`steersman check`: its texts and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from steersman.cli import main
from tests.check.manifests import DEPLOYMENT


def test_findings_are_lines_that_editors_understand(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(DEPLOYMENT.replace("replicas: 3", "replicas: -1"))
    result = CliRunner().invoke(main, ["check", str(file)])
    assert result.exit_code == 1
    assert result.output == (
        f"{file}:6: error: Deployment shop/web: spec.replicas: Invalid value: -1: must be greater than or equal to 0 "
        "[Invalid]\n1 object: 1 error, 0 warnings\n"
    )


def test_exit_codes(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("apiVersion: v1\nkind: Endpoints\nmetadata: {name: a}\n")

    def code(*arguments: str) -> int:
        return CliRunner().invoke(main, ["check", *arguments]).exit_code

    assert code(str(file)) == 0
    assert code(str(file), "--fail-on", "warning") == 1
    assert code(str(file), "--fail-on", "warning", "--ignore", "Warning") == 0
    assert code(str(tmp_path / "nowhere")) == 2
    for wrong in (
        ["--as-group", "a"],
        ["--ignore", "Waring"],
        ["--kubernetes", "1.20"],
        ["--old", str(tmp_path / "no")],
    ):
        assert code(str(file), *wrong) == 2
    assert code() == code("--colour", str(file)) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_verdict_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "steersman.cli", "check", str(file)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "steersman: [Errno 28] No space left on device\n"


def test_texts_of_documents_cannot_control_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "a\\e]0;x\\a\\u202e"}\n')
    result = CliRunner().invoke(main, ["check", str(file)])
    assert result.exit_code == 1
    assert not {"\x1b", "\x07", "\u202e"} & set(result.output)
    assert "a\\x1b]0;x\\x07\\u202e" in result.output


def test_other_forms_go_to_standard_output_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("kind: 3\n")
    result = CliRunner().invoke(main, ["check", str(file), "-o", "json"])
    assert (result.exit_code, json.loads(result.output)["errors"]) == (1, 1)
