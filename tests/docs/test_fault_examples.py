"""The examples and tables of docs/faults.md against the code."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from steersman.cluster.fault_objects.definition import definition
from steersman.faults.fault import Effect, FaultSpec, Match, StaleEffect, When, spec_of
from tests.docs.markdown_documents import ROOT, Document

DOCUMENT = Document(ROOT / "docs" / "faults.md")
TEXT = (ROOT / "docs" / "faults.md").read_text()
BLOCKS = [yaml.safe_load(each)["spec"] for each in DOCUMENT.blocks("yaml")]
INLINE = [
    {key: value for part in row for key, value in yaml.safe_load(part).items()}
    for line in TEXT.splitlines()
    if (row := re.findall(r"`((?:match|when|effect): \{.*?\})`", line))
]


@pytest.mark.parametrize("spec", BLOCKS, ids=str)
def test_examples_can_be_injected(spec: dict[str, Any]) -> None:
    assert spec_of(spec) != FaultSpec()


@pytest.mark.parametrize("parts", INLINE, ids=str)
def test_examples_in_tables_can_be_injected(parts: dict[str, Any]) -> None:
    assert "match" in parts
    spec_of({"effect": {"status": {"code": 500}}, **parts})


@pytest.mark.parametrize(
    ("struct", "part"), [(Match, "match"), (When, "when"), (Effect, "effect"), (StaleEffect, "effect.stale")]
)
def test_every_field_is_in_a_table_and_in_the_definition(struct: type[Any], part: str) -> None:
    (version,) = definition()["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for name in part.split("."):
        schema = schema["properties"][name]
    fields = set(struct.__struct_encode_fields__)
    assert fields == schema["properties"].keys()
    rows = " ".join(line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| `"))
    assert not {each for each in fields if not re.search(rf"`{each}\b", rows)}
