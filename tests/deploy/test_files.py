"""Files for pipelines and services name commands, flags, targets and paths that there are."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.cli.main import main
from steersman.controlplane.options import FLAGS
from tests import ROOT
from tests.docs.markdown_documents import Document
from tools.try_image import exec_form, parse

DEPLOY = ROOT / "deploy"
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))


def known_flags(command: str) -> set[str]:
    """Return the flags of a command of `steersman`, with those of the server for the commands that take them."""
    own = {option for each in main.commands[command].params for option in each.opts}
    return own | {f"--{name}" for name in FLAGS} if command in ("up", "serve") else own


def check_command(words: list[str]) -> None:
    """Fail if a command of `steersman` or one of its flags does not exist. `words` begin with the command."""
    command = main.commands[words[0]]
    path, rest = words[0], words[1:]
    if hasattr(command, "commands"):
        own = {option for each in command.commands[rest[0]].params for option in each.opts}
        flags, rest = own, rest[1:]
    else:
        flags = known_flags(path)
    assert {word.partition("=")[0] for word in rest if word.startswith("--")} <= flags, words


def runs(workflow: Any) -> list[str]:
    """Return the commands of a workflow's steps."""
    return [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_call_targets_and_files_that_there_are(file: Path) -> None:
    commands = runs(yaml.safe_load(file.read_text()))
    assert commands
    for command in commands:
        words = shlex.split(command.partition("\n")[0])
        if words[0] == "make":
            assert words[1] in TARGETS
        elif "/" in words[0]:
            assert (ROOT / words[0]).is_file()


def test_the_image_runs_a_command_with_flags_that_there_are() -> None:
    image = parse((DEPLOY / "Containerfile").read_text())
    assert exec_form(image.settings["ENTRYPOINT"]) == ["steersman"]
    check_command(exec_form(image.settings["CMD"]))
    health = exec_form(image.settings["HEALTHCHECK"])
    assert health[0] == "steersman"
    check_command(health[1:])
    assert image.settings["USER"].split(":")[0] != "0"


def test_the_composed_service_has_the_image_s_user_and_a_read_only_root() -> None:
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["cluster"]
    check_command(service["command"])
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])


@pytest.mark.parametrize("name", ["steersman.service", "steersman-backup.service"])
def test_units_start_commands_with_flags_that_there_are(name: str) -> None:
    started = re.search(r"/opt/steersman/bin/steersman ([^'\n]+)", (DEPLOY / name).read_text())
    assert started is not None
    check_command(shlex.split(started[1]))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    program = tmp_path / "steersman"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for file in sorted(DEPLOY.glob("*.service")) + sorted(DEPLOY.glob("*.timer")):
        (tmp_path / file.name).write_text(file.read_text().replace("/opt/steersman/bin/steersman", str(program)))
    units = sorted(tmp_path.glob("*.service")) + sorted(tmp_path.glob("*.timer"))
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True)
    assert [line for line in verified.stderr.splitlines() if str(tmp_path) in line] == []


def test_the_settings_in_the_documents_change_the_unit(tmp_path: Path) -> None:
    """The server has the flags, and systemd starts the program with them, if it is there."""
    (block,) = Document(ROOT / "docs" / "serve.md").blocks("ini")
    command = block.replace("\\\n", " ").rpartition("ExecStart=")[2]
    check_command(shlex.split(command)[1:])
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    (program := tmp_path / "steersman").write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (settings := tmp_path / "steersman.service.d").mkdir()
    for text, path in (
        ((DEPLOY / "steersman.service").read_text(), tmp_path / "steersman.service"),
        (block, settings / "override.conf"),
    ):
        path.write_text(text.replace("/opt/steersman/bin/steersman", str(program)))
    unit = tmp_path / "steersman.service"
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    assert [line for line in verified.stderr.splitlines() if str(tmp_path) in line] == []


def test_the_inputs_of_the_action_reach_its_script() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = action["runs"]["steps"]
    script = (DEPLOY / "action.sh").read_text()
    for name, value in step["env"].items():
        assert re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", value)[1] in action["inputs"]  # type: ignore[index]
        assert f"${{{name}" in script
    written = set(re.findall(r'echo "(\w+)=', script.partition("{")[2]))
    assert set(action["outputs"]) <= written
