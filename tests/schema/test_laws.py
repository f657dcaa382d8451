"""Properties that hold for every schema and value."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from steersman.schema import CoercionError, Structural, compile_schema
from tests.schema.asking import refused
from tools.compare_schemas.schemas import schema
from tools.compare_schemas.values import changed, value

seeds = st.integers(0, 2**32)


def case(seed: int) -> tuple[Random, dict[str, Any], Structural, dict[str, Any]]:
    """A schema that a definition may have, compiled, and an object that was decoded and can be read."""
    random = Random(seed)
    while True:
        plain: dict[str, Any] = {"type": "object", "properties": {"spec": schema(random)}}
        if refused(plain):
            continue
        structural = compile_schema(plain)
        obj = {"apiVersion": "a/v1", "kind": "A", "metadata": {}, "spec": value(random, plain["properties"]["spec"])}
        try:
            structural.fit(obj)
        except CoercionError:
            continue
        return random, plain, structural, obj


@given(seeds)
def test_what_was_pruned_is_pruned(seed: int) -> None:
    _, _, structural, obj = case(seed)
    again = copy.deepcopy(obj)
    assert structural.fit(again, strict=True) == []
    assert again == obj


@given(seeds)
def test_what_was_defaulted_is_defaulted(seed: int) -> None:
    _, _, structural, obj = case(seed)
    structural.default(obj)
    again = copy.deepcopy(obj)
    structural.default(again)
    assert again == obj
    assert structural.fit(again, strict=True) == []
    assert again == obj


@given(seeds)
def test_no_error_is_told_of_what_is_accepted_and_some_of_what_is_not(seed: int) -> None:
    """Fast validation and the validation with errors agree."""
    from steersman.machinery.errors.field import Path
    from steersman.schema.fast_validation import is_valid
    from steersman.schema.validation_errors import validation_errors

    _, _, structural, obj = case(seed)
    assert is_valid(structural.root, obj) == (not list(validation_errors(structural.root, obj, Path())))


@given(seeds)
def test_what_is_not_changed_is_never_refused(seed: int) -> None:
    """Except for objects with members that are not in the schema, which cannot be distinguished from changed ones."""
    _, _, structural, obj = case(seed)
    structural.default(obj)
    if structural.correlate(obj, copy.deepcopy(obj)).is_same():
        assert structural.validate_update(obj, copy.deepcopy(obj)) == []
    assert structural.validate_lists(obj, obj) == []


@given(seeds)
def test_an_update_is_refused_for_no_more_than_a_create(seed: int) -> None:
    random, plain, structural, old = case(seed)
    new = {**old, "spec": changed(random, old.get("spec"), plain["properties"]["spec"])}
    of_create = {(each.field, each.body) for each in structural.validate(new)}
    assert {(each.field, each.body) for each in structural.validate_update(new, old)} <= of_create


@given(seeds)
def test_a_schema_is_owned_by_its_shape(seed: int) -> None:
    """The schema of managed fields can be created from every schema that a definition may have."""
    _, _, structural, _ = case(seed)
    assert structural.ownership is structural.ownership
