"""Resources inside of resources."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.schema import CoercionError
from tests.schema.asking import compiled, told

RESOURCE = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = compiled(
    r=RESOURCE, l={"type": "array", "items": RESOURCE}, m={"type": "object", "additionalProperties": RESOURCE}
)
OF_METADATA = "json: cannot unmarshal"


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        ({"apiVersion": 1}, "r.apiVersion: Invalid value: 1: must be a string"),
        ({"kind": None}, "r.kind: Invalid value: null: must be a string"),
        (
            {"metadata": "text"},
            f'r.metadata: Invalid value: "text": {OF_METADATA} string into Go value of type v1.ObjectMeta',
        ),
        (
            {"metadata": {"labels": "x", "name": 5}},
            f'r.metadata: Invalid value: {{"labels":"x","name":5}}: {OF_METADATA} string into Go struct field'
            " ObjectMeta.labels of type map[string]string",
        ),
    ],
)
def test_what_cannot_be_read_is_told(resource: dict[str, Any], error: str) -> None:
    with pytest.raises(CoercionError) as raised:
        SCHEMA.coerce({"r": resource})
    assert str(raised.value.error) == str(raised.value) == error


def test_a_number_without_a_fraction_is_an_integer() -> None:
    obj: dict[str, Any] = {"r": {"apiVersion": "v1", "kind": "A", "metadata": {"generation": 1.0}}}
    assert SCHEMA.validate_embedded(obj) == []
    SCHEMA.coerce(obj)
    assert repr(obj["r"]["metadata"]) == "{'generation': 1}"


def test_what_cannot_be_read_from_storage_is_dropped() -> None:
    obj: dict[str, Any] = {
        "r": {
            "apiVersion": 1,
            "kind": "A",
            "metadata": {"labels": "x", "name": "a", "odd": 1, "creationTimestamp": None},
        },
        "l": [{"metadata": "text"}],
    }
    SCHEMA.coerce(obj, lenient=True)
    assert obj == {"r": {"kind": "A", "metadata": {"name": "a"}}, "l": [{"metadata": "text"}]}


def test_metadata_is_brought_into_its_one_form() -> None:
    obj: dict[str, Any] = {
        "r": {
            "metadata": {
                "creationTimestamp": "2020-01-01T00:00:00+01:00",
                "labels": {},
                "odd": {"x": 1},
                "generation": 3,
            }
        },
        "m": {"a": {"metadata": None}},
    }
    assert SCHEMA.coerce(obj, strict=True) == ["r.metadata.odd"]
    assert obj == {
        "r": {"metadata": {"creationTimestamp": "2019-12-31T23:00:00Z", "generation": 3}},
        "m": {"a": {"metadata": {}}},
    }


@pytest.mark.parametrize(
    ("resource", "errors"),
    [
        ({}, [("r.apiVersion", "Required value"), ("r.kind", "Required value")]),
        (
            {"apiVersion": "", "kind": ""},
            [
                ("r.apiVersion", 'Invalid value: "": must not be empty'),
                ("r.kind", 'Invalid value: "": must not be empty'),
            ],
        ),
        (
            {"apiVersion": "a/b/c", "kind": "A"},
            [("r.apiVersion", 'Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c')],
        ),
        (
            {"apiVersion": "v1", "kind": "Bad Kind"},
            [
                (
                    "r.kind",
                    'Invalid value: "Bad Kind": may have mixed case, but should otherwise match: a DNS-1035 label must'
                    " consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end"
                    " with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
                    " '[a-z]([-a-z0-9]*[a-z0-9])?')",
                )
            ],
        ),
        (
            {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a/b"}},
            [("r.metadata.name", "Invalid value: \"a/b\": may not contain '/'")],
        ),
        ({"apiVersion": "v1", "kind": "A", "metadata": {}}, []),
    ],
)
def test_what_is_wrong_with_a_resource(resource: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert told(SCHEMA.validate_embedded({"r": resource})) == errors


def test_resources_in_lists_and_maps_are_named_by_their_place() -> None:
    assert [
        place for place, _ in told(SCHEMA.validate_embedded({"l": [{"kind": "A"}], "m": {"a": {"kind": "A"}}}))
    ] == [
        "l[0].apiVersion",
        "m[a].apiVersion",
    ]
