"""Tests that docs/envtest.md describes the programs of `steersman envtest` correctly."""

from __future__ import annotations

import re

from steersman.cli.envtest.kube_apiserver import LEGACY, OWN, WITHOUT_EFFECT, version_line
from tests.docs.markdown_documents import ROOT, Document, plain

DOCUMENT = Document(ROOT / "docs" / "envtest.md")


def test_the_flags_of_kube_apiserver_are_those_that_are_taken() -> None:
    assert {plain(row[0]) for row in DOCUMENT.table("Flags")} == {*OWN, *LEGACY}
    told = DOCUMENT.section("Flags").partition("These have no effect:")[2].partition("not supported yet")[0]
    assert set(re.findall(r"`--([a-z0-9-]+)`", told)) == WITHOUT_EFFECT
    assert version_line() in DOCUMENT.text
