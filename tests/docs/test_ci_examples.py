"""The examples of docs/test-ci.md fit action.yml, the commands that a test types, and deploy/Containerfile."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
from typing import Any

import yaml

from steersman.cli.main import main
from steersman.testing import pytest_plugin
from tests.docs.markdown_documents import ROOT, Document, plain
from tests.e2e.reader import steps

DOCUMENT = Document(ROOT / "docs" / "test-ci.md")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def workflow(name: str) -> dict[str, Any]:
    """Return the YAML block whose first line names a file."""
    (found,) = [block for block in DOCUMENT.blocks("yaml") if block.startswith(f"# {name}\n")]
    parsed: dict[str, Any] = yaml.safe_load(found)
    return parsed


def test_inputs_and_outputs_are_those_of_the_action() -> None:
    rows = {plain(row[0]): plain(row[1]) for row in DOCUMENT.table("GitHub")}
    assert rows.keys() == ACTION["inputs"].keys()
    for name, row in rows.items():
        assert row == (ACTION["inputs"][name]["default"] or ("the newest" if name == "version" else ""))
    told = DOCUMENT.section("GitHub").partition("Its outputs are")[2]
    assert set(re.findall(r"`(\w+)`", told)) == ACTION["outputs"].keys()


def test_the_workflow_gives_the_action_inputs_that_it_has() -> None:
    (job,) = workflow(".github/workflows/test.yaml")["jobs"].values()
    (step,) = [step for step in job["steps"] if "/steersman@" in step.get("uses", "")]
    assert set(step["with"]) <= ACTION["inputs"].keys()


def test_the_job_of_gitlab_runs_the_commands_of_the_shell() -> None:
    (job,) = workflow(".gitlab-ci.yml").values()
    typed = {step.command for block in DOCUMENT.blocks("console") for step in steps(block)}
    for line in (*job["script"], *job["after_script"]):
        if line.startswith("python -c "):
            compile(shlex.split(line)[2], line, "exec")
        elif line.startswith("pip install steersman"):
            assert "pip install steersman" in typed
        else:
            assert line in typed


def test_the_jobs_of_an_operator_run_commands_with_options_that_exist() -> None:
    found = set()
    for job in workflow(".github/workflows/operator.yaml")["jobs"].values():
        for script in (step["run"] for step in job["steps"] if "run" in step):
            subprocess.run(["bash", "-n"], input=script, text=True, check=True)
            for name, typed in re.findall(r"\bsteersman (\w+)([^\n)]*)", script):
                command = main.commands[name]
                options = {option for each in command.params for option in each.opts}
                assert {each for each in typed.split() if each.startswith("-")} <= options
                found.add(name)
            if "--steersman-report" in script:
                assert "steersman-report" in inspect.getsource(pytest_plugin)
    assert found == {"check", "envtest", "report"}


def test_containers_are_used_as_the_image_is_made() -> None:
    image = (ROOT / "deploy" / "Containerfile").read_text()
    assert {"VOLUME /data", "EXPOSE 6443"} <= set(image.splitlines())
    assert '"--data-dir", "/data"' in image
    (python,), (java,) = DOCUMENT.blocks("python"), DOCUMENT.blocks("java")
    compile(python, "test_in_a_container.py", "exec")
    for block in (python, java):
        assert {"/data/admin.kubeconfig", "127.0.0.1:6443", "ready url="} <= set(
            re.findall(r"/data/[\w.]+|127\.0\.0\.1:6443|ready url=", block)
        )
    assert "not run\nhere" in DOCUMENT.text or "not run here" in DOCUMENT.text
