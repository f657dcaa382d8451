"""JSON in the form of audit events."""

from __future__ import annotations

import json

import pytest

from steersman.audit.documents import NotJSON, as_go_escapes, compact, without_managed_fields

OWNED = {"metadata": {"name": "a", "managedFields": [{"manager": "m"}], "labels": {"x": "y"}}, "big": 12345678901234567}


def test_what_go_escapes_is_escaped() -> None:
    assert (
        as_go_escapes('{"a":"<b>&\u2028\u2029ü"}'.encode()) == '{"a":"\\u003cb\\u003e\\u0026\\u2028\\u2029ü"}'.encode()
    )
    assert as_go_escapes(b'{"a":1}') == b'{"a":1}'


def test_blanks_between_values_go_and_those_within_stay() -> None:
    assert compact(b'{ "a" : [ 1,\n 2 ],\t"b": "c  d" }\n') == b'{"a":[1,2],"b":"c  d"}'


@pytest.mark.parametrize("data", [b"", b'{"a": bad', b"a: b\n", b'{"a": 1} 2', b"[" * 100_000])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(NotJSON):
        compact(data)


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (OWNED, {"metadata": {"name": "a", "labels": {"x": "y"}}, "big": 12345678901234567}),
        (
            {"kind": "List", "metadata": {}, "items": [OWNED, {"metadata": {}}]},
            {
                "kind": "List",
                "metadata": {},
                "items": [
                    {"metadata": {"name": "a", "labels": {"x": "y"}}, "big": 12345678901234567},
                    {"metadata": {}},
                ],
            },
        ),
        (
            {"kind": "Table", "rows": [{"cells": [1], "object": OWNED}, {"cells": [], "object": None}]},
            {
                "kind": "Table",
                "rows": [
                    {
                        "cells": [1],
                        "object": {"metadata": {"name": "a", "labels": {"x": "y"}}, "big": 12345678901234567},
                    },
                    {"cells": [], "object": None},
                ],
            },
        ),
        ({"data": {"managedFields": "mine"}}, {"data": {"managedFields": "mine"}}),
        (
            {"metadata": None, "items": None, "x": "managedFields"},
            {"metadata": None, "items": None, "x": "managedFields"},
        ),
    ],
)
def test_owners_of_fields_are_left_out_and_nothing_else(value: object, left: object) -> None:
    assert json.loads(without_managed_fields(json.dumps(value).encode())) == left
