"""Tests of flags and commands in the documents: every flag is described, and every shown command exists."""

from __future__ import annotations

import re
import shlex

import pytest

from steersman.cli import main
from steersman.controlplane.options import FLAGS
from tests import ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(?:sh|bash|console|shell)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, list[str]]]:
    """Return every command in a shell block: its document, and its words up to a pipe or a redirect."""
    found = []
    for document in DOCUMENTS:
        for block in _BLOCK.findall(document.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                for index, word in enumerate(words):
                    if word in ("&", "|", "&&", ";", ">"):
                        words = words[:index]
                        break
                if words:
                    found.append((document.name, words))
    return found


def test_flags_of_a_cluster_are_told_in_its_guide() -> None:
    guide = (ROOT / "docs" / "up.md").read_text()
    own = [option for each in main.commands["up"].params for option in each.opts if option.startswith("--")]
    assert "--nodes" in own
    assert [option for option in own if f"`{option}" not in guide and f" {option}" not in guide] == []


@pytest.mark.parametrize(("document", "words"), commands() or [pytest.param("", [], id="none")])
def test_every_command_exists(document: str, words: list[str]) -> None:
    if words[:1] == ["make"]:
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in words[1:] if "=" not in word} <= set(targets)
    elif words[:1] == ["steersman"] and len(words) > 1:
        assert words[1] in main.commands or words[1].startswith("-")
        if words[1] == "serve":
            flags = {word.partition("=")[0].lstrip("-") for word in words[2:] if word.startswith("--")}
            assert flags <= {*FLAGS, "help"}
