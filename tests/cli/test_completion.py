"""Completion in shells: bash through its own interface, zsh and fish through the program that they run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from steersman.cli import main

ASK = """
eval "$(steersman completion bash)"
compopt() { echo "compopt $*"; }
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
_steersman_completion steersman
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with `steersman`."""
    program = tmp_path / "steersman"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m steersman.cli "$@"\n')
    program.chmod(0o755)
    return tmp_path


def bash(programs: Path, *words: str) -> list[str]:
    """Return bash's completions of the last word."""
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("steersman", "kub"), ["kubeconfig"]),
        (
            ("steersman", "serve", "--storage-"),
            ["--storage-media-type", "--storage-backend", "--storage-initialization-timeout"],
        ),
        (("steersman", "up", "--nod"), ["--nodes"]),
        (("steersman", "up", "--storage", "m"), ["memory"]),
        (("steersman", "up", "--storage", "=", "m"), ["memory"]),
        (("steersman", "up", "--storage", "="), ["sqlite", "memory"]),
        (("steersman", "serve", "--secure-port=0", "--authorization-mode", "=", "RBAC,AlwaysA"), ["RBAC,AlwaysAllow"]),
        (("steersman", "serve", "--client-ca-file", ""), ["compopt", "-o", "default"]),
        (("steersman", "up", "--data-dir", "x"), ["compopt", "-o", "dirnames"]),
        (("steersman", "completion", ""), ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes_commands_flags_and_values(programs: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert bash(programs, *words) == offered


@pytest.mark.parametrize(
    ("shell", "words", "told"),
    [
        ("zsh", "steersman serve --secure-po", "plain\n--secure-port\nport to listen on, 0 for a free one\n"),
        ("zsh", "steersman serve --storage=me", "plain\nmemory\n_\n"),
        ("fish", "steersman up --secure-port=0 --det", "plain,--detach\treturn when"),
    ],
)
def test_zsh_and_fish_are_told_what_flags_are_for(shell: str, words: str, told: str) -> None:
    asked = {"_STEERSMAN_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    if shell == "fish":
        asked |= {"COMP_WORDS": words, "COMP_CWORD": words.rpartition(" ")[2]}
    done = CliRunner().invoke(main, [], env=asked, prog_name="steersman")
    assert done.stdout.startswith(told)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_programs_of_other_shells_are_printed(shell: str) -> None:
    assert f"_STEERSMAN_COMPLETE={shell}_complete" in CliRunner().invoke(main, ["completion", shell]).stdout
