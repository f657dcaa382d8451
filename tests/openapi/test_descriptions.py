"""Descriptions of types and fields from the published package."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from steersman import openapi
from steersman.openapi.descriptions import (
    Descriptions,
    parse_docstring,
    python_name,
    source_version,
    split_words,
    without_values,
)
from steersman.openapi.schemas import recorded

WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=20), min_size=1, max_size=60).map(" ".join)
CORE = "io.k8s.api.core.v1"
LAYOUTS = Path(openapi.__file__).parent / "data" / "layout.json"


def docstring(text: str, fields: dict[str, str]) -> str:
    """A class docstring as the package has it: wrapped, fields in a list."""
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
    found = parse_docstring(
        "A short line.\n      Another paragraph:\n      - an item\n      - another item\n\n      **parameters**\n\n"
        "      * **name** ``str`` - \n      * **on** ``Optional[bool]`` - Whether.\n        1. first\n    "
    )
    assert found.text == "A short line.\n\nAnother paragraph:\n- an item\n- another item"
    assert found.fields == {"name": "", "on": "Whether.\n1. first"}


def test_types_of_every_kind_of_group_are_found() -> None:
    descriptions = Descriptions()
    for name in (
        f"{CORE}.Pod",
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        "io.k8s.apimachinery.pkg.version.Info",
    ):
        found = descriptions.of(name)
        assert found is not None, name
        assert found.text, name
    assert source_version()


def test_unknown_types_have_none() -> None:
    descriptions = Descriptions()
    for name in ("Pod", f"{CORE}.Nothing", "com.example.v1.Kettle", "io.k8s.api.core.../x.Pod"):
        assert descriptions.of(name) is None


def test_schemas_get_descriptions_of_type_and_fields() -> None:
    schemas = {
        "io.k8s.api.networking.v1.IPBlock": {"properties": {"cidr": {"type": "string"}, "except": {"type": "array"}}},
        f"{CORE}.Pod": {"properties": {"spec": {"$ref": "#/x"}, "unheard": {}}, "description": "kept"},
        "com.example.v1.Kettle": {"properties": {"spec": {}}},
    }
    Descriptions().describe(schemas)
    block, pod, kettle = schemas.values()
    assert block["description"]
    assert all(each["description"] for each in block["properties"].values())
    assert pod["description"] == "kept"
    assert pod["properties"]["spec"]["description"]
    assert pod["properties"]["unheard"] == {}
    assert kettle == {"properties": {"spec": {}}}


def test_names_that_python_cannot_have_are_found() -> None:
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    schemas = {name: {"properties": {"x-kubernetes-map-type": {}, "format": {}}}}
    Descriptions().describe(schemas)
    assert all("description" in each for each in schemas[name]["properties"].values())


def test_every_recorded_layout_fits_the_words_of_the_installed_package() -> None:
    layouts = orjson.loads(LAYOUTS.read_bytes())
    plain = Descriptions(layouts={})
    for name, fields in layouts.items():
        described = plain.of(name)
        assert described is not None, name
        for field, (count, spaces) in fields.items():
            words, between = split_words(described.fields[python_name(field)] if field else described.text)
            assert len(words) == count, (name, field)
            assert any(between[int(place)] != space for place, space in spaces.items()), (name, field)


def test_recorded_whitespace_is_restored() -> None:
    name = "io.k8s.api.admissionregistration.v1.ApplyConfiguration"
    schemas: dict[str, Any] = {name: {"properties": {"expression": {"type": "string"}}}}
    Descriptions().describe(schemas)
    text = schemas[name]["properties"]["expression"]["description"]
    assert '\n\n\tObject{\n\t  spec: Object.spec{\n\t    serviceAccountName: "example"\n\t  }\n\t}\n\n' in text


def test_a_layout_of_other_words_is_left_out() -> None:
    name = f"{CORE}.PodList"
    plain = Descriptions(layouts={}).of(name)
    assert plain is not None
    schemas: dict[str, Any] = {name: {}}
    Descriptions(layouts={name: {"": (1000, {"0": "\n\n"})}}).describe(schemas)
    assert schemas[name]["description"] == plain.text


def test_values_of_enumerations_are_listed() -> None:
    name = f"{CORE}.PodSpec"
    schemas: dict[str, Any] = {name: recorded(name)}
    Descriptions().describe(schemas)
    text = schemas[name]["properties"]["restartPolicy"]["description"]
    assert text.endswith('\n\nPossible enum values:\n - `"Always"`\n - `"Never"`\n - `"OnFailure"`')
    assert without_values(text) == text.partition("\n\nPossible")[0]


def test_types_without_a_class_in_the_package_are_described() -> None:
    names = ("api.resource.Quantity", "apis.meta.v1.Time", "apis.meta.v1.FieldsV1", "util.intstr.IntOrString")
    schemas: dict[str, Any] = {f"io.k8s.apimachinery.pkg.{name}": {} for name in names}
    Descriptions().describe(schemas)
    assert all(schema["description"] for schema in schemas.values())
