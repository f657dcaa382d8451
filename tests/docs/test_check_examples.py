"""The examples of docs/check.md fit the command and the hook, and its tables have all rules and options."""

from __future__ import annotations

import shlex
from typing import Any

import yaml

from steersman.check.finding import Level, Rule
from steersman.cli.check import check
from tests.docs.markdown_documents import ROOT, Document, plain

DOCUMENT = Document(ROOT / "docs" / "check.md")


def example(name: str) -> dict[str, Any]:
    """Return the YAML block whose first line names a file."""
    (found,) = [block for block in DOCUMENT.blocks("yaml") if block.startswith(f"# {name}\n")]
    parsed: dict[str, Any] = yaml.safe_load(found)
    return parsed


def test_the_hook_is_one_that_the_project_has() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (repository,) = example(".pre-commit-config.yaml")["repos"]
    (used,) = repository["hooks"]
    assert used["id"] == hook["id"]
    assert hook["entry"] == "steersman check"
    check.make_context("check", [*used["args"], "file.yaml"])


def test_the_command_of_the_workflow_is_understood() -> None:
    (job,) = example(".github/workflows/check.yaml")["jobs"].values()
    (line,) = [each["run"] for each in job["steps"] if "steersman check" in each.get("run", "")]
    command, _, output = line.partition(" > ")
    arguments = shlex.split(command)[2:]
    assert check.make_context("check", arguments).params["output"] == "sarif"
    (upload,) = [each["with"]["sarif_file"] for each in job["steps"] if "with" in each]
    assert upload == output


def test_the_tables_have_all_rules_and_options() -> None:
    rows = {plain(row[0]): row[1] for row in DOCUMENT.table("Rules")}
    assert list(rows) == [each.value for each in (*Rule.__members__.values(),) if each.value in rows]
    assert rows.keys() == {each.value for each in Rule}
    assert set(rows.values()) == {each.value for each in Level}
    options = {name for each in check.params for name in each.opts if name.startswith("--")}
    told = DOCUMENT.text
    assert [
        each for each in sorted(options - {"--help", "--kubernetes", "--output", "--namespace"}) if each not in told
    ] == []
