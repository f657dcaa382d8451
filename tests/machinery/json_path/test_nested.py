"""Members by the names around them."""

from typing import Any

import pytest

from steersman.machinery.json_path.nested import NestedFieldError, nested_field, split_path

DATA: dict[str, Any] = {"spec": {"replicas": 3, "text": "x", "null": None, "share": 1.5}}


def test_a_value_is_found_under_its_path() -> None:
    assert nested_field(DATA, split_path(".spec.replicas"), int) == 3
    assert nested_field(DATA, split_path(".spec.text"), str) == "x"


@pytest.mark.parametrize("path", [".spec.none", ".status.replicas", ".spec.null.more"])
def test_what_is_missing_is_none(path: str) -> None:
    assert nested_field(DATA, split_path(path), int) is None


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        (".spec.text", int, ".spec.text accessor error: x is of the type string, expected int64"),
        (".spec.share", int, ".spec.share accessor error: 1.5 is of the type float64, expected int64"),
        (".spec.null", int, ".spec.null accessor error: <nil> is of the type <nil>, expected int64"),
        (".spec.replicas", str, ".spec.replicas accessor error: 3 is of the type int64, expected string"),
        (
            ".spec.text.more",
            int,
            ".spec.text.more accessor error: x is of the type string, expected map[string]interface{}",
        ),
    ],
)
def test_a_value_of_another_type_is_an_error(path: str, kind: type[int] | type[str], message: str) -> None:
    with pytest.raises(NestedFieldError) as caught:
        nested_field(DATA, split_path(path), kind)
    assert str(caught.value) == message
