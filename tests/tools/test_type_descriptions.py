"""Tests of the packaged descriptions: read from wrapped docstrings, with the whitespace that wrapping removed."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.openapi.description_files import FOLDER, module_of
from tools.type_descriptions import (
    TypeDescription,
    json_name,
    parse_docstring,
    read,
    recorded_layouts,
    split_words,
    with_layouts,
    write,
)

WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=20), min_size=1, max_size=60).map(" ".join)


def docstring(text: str, fields: dict[str, str]) -> str:
    """Return a class docstring in the package's form: wrapped, with a list of fields."""
    lines = textwrap.wrap(text, 78) if text else []
    lines = [*lines, "", "**parameters**", ""] if lines else ["**parameters**", ""]
    for name, field in fields.items():
        first, *more = textwrap.wrap(field, 78) or [""]
        lines += [f"* **{name}** ``Optional[str]`` - {first}", *(f"  {each}" for each in more)]
    return "\n".join(f"      {line}" if line and at else line for at, line in enumerate(lines))


@given(WORDS, st.dictionaries(st.from_regex("[a-z][A-Za-z]{0,20}", fullmatch=True), WORDS, max_size=4))
def test_wrapped_lines_are_joined_again(text: str, fields: dict[str, str]) -> None:
    found = parse_docstring(docstring(text, fields))
    assert found.text == text
    assert found.fields == fields


def test_paragraphs_and_lists_stay_apart() -> None:
    docstring = parse_docstring(
        "A short line.\n      Another paragraph:\n      - an item\n      - another item\n\n      **parameters**\n\n"
        "      * **name** ``str`` - \n      * **on** ``Optional[bool]`` - Whether.\n        1. first\n    "
    )
    assert docstring.text == "A short line.\n\nAnother paragraph:\n- an item\n- another item"
    assert docstring.fields == {"name": "", "on": "Whether.\n1. first"}


@pytest.mark.parametrize(
    ("attribute", "name"),
    [("d_ref", "$ref"), ("x_kubernetes_map_type", "x-kubernetes-map-type"), ("from_", "from"), ("podIP", "podIP")],
)
def test_attributes_have_their_json_names(attribute: str, name: str) -> None:
    assert json_name(attribute) == name


def test_every_recorded_layout_fits_the_words_of_the_installed_package() -> None:
    modules = read()
    for schema, fields in recorded_layouts().items():
        module, name = module_of(schema)
        described = modules[module][name]
        for field, (count, spaces) in fields.items():
            words, between = split_words(described.fields[field] if field else described.text)
            assert len(words) == count, (schema, field)
            assert any(between[int(place)] != space for place, space in spaces.items()), (schema, field)


def test_a_layout_of_other_words_is_left_out() -> None:
    plain = {"core_v1": {"Pod": TypeDescription("two words", {})}}
    assert with_layouts(plain, {"io.k8s.api.core.v1.Pod": {"": (1000, {"0": "\n\n"})}}) == plain
    laid_out = with_layouts(plain, {"io.k8s.api.core.v1.Pod": {"": (2, {"0": "\n\n"})}})
    assert laid_out["core_v1"]["Pod"].text == "two\n\nwords"


def test_the_installed_files_are_those_that_a_build_makes(tmp_path: Path) -> None:
    write(tmp_path / "made")
    made = {each.name: each.read_bytes() for each in (tmp_path / "made").iterdir()}
    assert made == {each.name: each.read_bytes() for each in FOLDER.iterdir()}
    assert len(json.loads(made["SOURCE.json"])["sha256"]) == 64
