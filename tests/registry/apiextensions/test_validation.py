"""Validation of definitions as in kube-apiserver 1.36, whose answers to `cases` are in `answers.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steersman.api.apiextensions.v1 import CustomResourceDefinitionCondition
from steersman.machinery.go.strings import to_lower
from tests.registry.apiextensions.cases import CREATED, UPDATED
from tests.registry.apiextensions.definitions import created, definition, schema, texts, updated, version

ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text())


@pytest.mark.parametrize("title", CREATED)
def test_a_new_definition_is_judged(title: str) -> None:
    answer: dict[str, Any] = ANSWERS["created"][title]
    _, errors, warnings = created(CREATED[title])
    assert texts(errors) == answer["errors"]
    if not errors:
        assert sorted(warnings) == answer.get("warnings", [])


@pytest.mark.parametrize("title", UPDATED)
def test_an_update_of_an_established_definition_is_judged(title: str) -> None:
    before, after = UPDATED[title]
    answer: dict[str, Any] = ANSWERS["updated"][title]
    old, faults, _ = created(before)
    assert not faults
    old.status.conditions = [CustomResourceDefinitionCondition(type="Established", status="True")]
    _, errors, warnings = updated(after, old)
    assert texts(errors) == answer["errors"]
    if not errors:
        assert sorted(warnings) == answer.get("warnings", [])


def test_paths_say_whether_versions_have_something_in_common() -> None:
    wrong = schema(a={"type": "null"})
    one = created(definition(versions=[version(of=wrong)]))[1]
    alike = created(definition(versions=[version(of=wrong), version("v2", of=wrong)]))[1]
    apart = created(definition(versions=[version(of=wrong), version("v2")]))[1]
    assert {error.field.partition(".openAPIV3Schema")[0] for error in one} == {"spec.validation"}
    assert {error.field.partition(".openAPIV3Schema")[0] for error in alike} == {"spec.validation"}
    assert {error.field.partition(".openAPIV3Schema")[0] for error in apart} == {"spec.versions[0].schema"}


def test_there_are_at_most_a_hundred_versions() -> None:
    """Each version is served at its own paths; installing thousands would block the event loop."""
    more = [version(f"v{number}", served=True, storage=False) for number in range(2, 102)]
    assert not created(definition(versions=[version(), *more[:-1]]))[1]
    (error,) = created(definition(versions=[version(), *more]))[1]
    assert str(error) == "spec.versions: Too many: 101: must have at most 100 items"


def test_one_and_true_are_not_the_same_schema() -> None:
    one = version(of=schema(a={"type": "integer", "default": 1}))
    yes = version("v2", of=schema(a={"type": "boolean", "default": True}))
    also = version("v2", of=schema(a={"type": "integer", "default": True}))
    assert not created(definition(versions=[one, yes]))[1]
    (error,) = created(definition(versions=[one, also]))[1]
    assert error.field == "spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[a].default"


def test_names_are_lowered_to_a_singular() -> None:
    found, errors, _ = created(definition(names={"plural": "foos", "kind": "FooBar"}))
    assert not errors
    assert found.spec.names.singular == to_lower("FooBar")
    assert found.spec.names.list_kind == "FooBarList"
