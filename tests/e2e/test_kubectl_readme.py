"""The tour of custom resources in README.md, command by command, with a real kubectl."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from steersman.testing import ServerProcess
from tests.docs.markdown_documents import ROOT, Document
from tests.e2e.kubectl import TIMEOUT, Kubectl

pytestmark = pytest.mark.slow


def test_the_tour_of_custom_resources_prints_what_it_says(kubectl_binary: str, tmp_path: Path) -> None:
    """Every line that the document shows; `...` stands for more."""
    readme = Document(ROOT / "README.md")
    definition, widget = (block for block in readme.blocks("yaml") if "example.com" in block)
    (tmp_path / "widgets.yaml").write_text(definition)
    (tmp_path / "widget.yaml").write_text(widget)
    (programs := tmp_path / "programs").mkdir()
    (programs / "kubectl").symlink_to(Path(kubectl_binary).resolve())
    (tour,) = (block for block in readme.blocks("console") if "kubectl explain" in block)
    with ServerProcess(tmp_path / "data") as server:
        environment = Kubectl(kubectl_binary, server, tmp_path, "default").environment
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        for command, told in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", tour, re.MULTILINE):
            done = subprocess.run(
                ["sh", "-c", command], cwd=tmp_path, env={**environment, "PATH": path}, timeout=TIMEOUT, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            printed = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
            wanted = told.rstrip().splitlines()
            if wanted[-1] == "...":
                wanted, printed = wanted[:-1], printed[: len(wanted) - 1]
            assert printed == wanted, command
