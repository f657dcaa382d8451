"""Tests that docs/envtest.md describes the programs of `steersman envtest` correctly."""

from __future__ import annotations

import re

from steersman.cli.envtest.kube_apiserver import LEGACY, OWN, WITHOUT_EFFECT, help_text, version_line
from tests.docs.markdown_documents import ROOT, Document, plain

DOCUMENT = Document(ROOT / "docs" / "envtest.md")


def test_the_flags_of_kube_apiserver_are_those_that_are_taken() -> None:
    named = {name for row in DOCUMENT.table("Flags") for name in plain(row[0]).split(", ")}
    assert named == {*OWN, *LEGACY}
    assert version_line() in DOCUMENT.text


def test_the_help_tells_the_flags_without_effect() -> None:
    told = re.findall(r"^ +--([a-z0-9-]+) +has no effect$", help_text(), re.MULTILINE)
    assert set(told) >= WITHOUT_EFFECT
