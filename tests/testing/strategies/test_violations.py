from __future__ import annotations

import pytest
from hypothesis import given, settings

from steersman.testing import ThreadedEnvironment
from steersman.testing.strategies import NearlyValid, Unsatisfiable, nearly_valid
from tests.testing.strategies.widgets import DEFINITION, SCHEMA, WIDGETS, definition


def test_objects_have_one_fault_that_is_named() -> None:
    fields: set[str] = set()

    @given(nearly_valid(definition(SCHEMA)))
    def check(found: NearlyValid) -> None:
        assert found.message
        fields.add(found.field.partition("[")[0])

    check()
    assert len(fields) > 3


def test_a_server_refuses_them_with_the_same_field(widgets: ThreadedEnvironment) -> None:
    with widgets.client() as client:

        @settings(max_examples=20, deadline=None)
        @given(nearly_valid(DEFINITION))
        def check(found: NearlyValid) -> None:
            status, answer = client.json("POST", f"{WIDGETS}?dryRun=All", found.object)
            assert status == 422
            causes = [each for each in answer["details"]["causes"] if "some validation rules" not in each["message"]]
            assert [(each["field"], each["message"]) for each in causes] == [(found.field, found.message)]

        check()


def test_a_schema_that_refuses_nothing_is_named() -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    @given(nearly_valid(definition(anything)))
    def check(found: NearlyValid) -> None:
        raise AssertionError(f"{found} is refused")

    with pytest.raises(Unsatisfiable, match="no change of Widget objects gives an error of one field"):
        check()


def test_built_in_kinds_have_faults_too() -> None:
    fields: set[str] = set()

    @given(nearly_valid("Deployment"))
    def check(found: NearlyValid) -> None:
        assert found.field, "a server that cannot decode the object names no field"
        fields.add(found.field)

    check()
    assert any(each.startswith("spec.") for each in fields)
