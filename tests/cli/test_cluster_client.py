"""Commands that read a cluster, with kubeconfigs as kubectl has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from steersman.cli import main
from steersman.testing import ThreadedEnvironment
from tests.client.exec_plugin import V1, Plugin, token_of, with_user


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[Path]:
    with ThreadedEnvironment() as environment:
        yield environment.kubeconfig()


def exec_of(plugin: Plugin) -> dict[str, object]:
    return {"exec": {"apiVersion": V1, "command": str(plugin.path), "interactiveMode": "Never"}}


@pytest.mark.parametrize("command", [["why"], ["why", "ns/default"], ["trace", "--recent"]])
def test_a_plugin_gives_the_credentials(kubeconfig: Path, tmp_path: Path, command: list[str]) -> None:
    plugin = Plugin(tmp_path)
    plugin.prints({"token": token_of(kubeconfig)})
    result = CliRunner().invoke(main, [*command, "--kubeconfig", str(with_user(kubeconfig, exec_of(plugin)))])
    assert (result.exit_code, result.stderr) == (0, "")
    assert len(plugin.runs) == 1


def test_a_plugin_that_fails_is_one_line_without_control_characters(kubeconfig: Path, tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, "#!/bin/sh\nprintf 'log in:\\n\\033[31mnow\\n' >&2\nexit 1\n")
    result = CliRunner().invoke(main, ["why", "--kubeconfig", str(with_user(kubeconfig, exec_of(plugin)))])
    assert result.exit_code == 1
    assert result.stderr.endswith("failed with exit code 1: log in: \\x1b[31mnow\n")
    assert result.stderr.count("\n") == 1


def test_a_command_acts_as_another_user(kubeconfig: Path) -> None:
    path = with_user(kubeconfig, {"token": token_of(kubeconfig), "as": "joe"})
    result = CliRunner().invoke(main, ["why", "can-i", "delete", "pods", "--kubeconfig", str(path)])
    assert "User joe may not delete pods" in result.output
