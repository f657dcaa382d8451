"""Cells of printer columns as kube-apiserver 1.36 shows them."""

from typing import Any

import pytest

from steersman.machinery.json_path.cells import PrinterColumn
from steersman.machinery.json_path.parser import JSONPathError

DATA: dict[str, Any] = {
    "text": "héllo",
    "whole": 7,
    "float": 1.5,
    "large": 1e30,
    "yes": True,
    "null": None,
    "list": [1, 2.5, "<"],
    "map": {"b": 1, "a": None},
    "named": [{"n": "x"}, {"n": "y"}],
    "day": "2020-01-01",
    "zero": "0001-01-01T00:00:00Z",
    "empty": "",
    "future": "9999-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("string", ".text", "héllo"),
        ("string", ".whole", "7"),
        ("string", ".float", "1.5"),
        ("string", ".large", "1e+30"),
        ("string", ".yes", "true"),
        ("string", ".null", "<no value>"),
        ("string", ".missing", None),
        ("string", ".list", '[1,2.5,"\\u003c"]'),
        ("string", ".map", '{"a":null,"b":1}'),
        ("string", ".named[*].n", "x"),
        ("string", ".named[5].n", None),
        ("string", '.named[?(@.n=="y")].n', "y"),
        ("string", ".text.*", "104"),
        ("integer", ".whole", 7),
        ("integer", ".float", 1),
        ("integer", ".large", -(2**63)),
        ("integer", ".yes", None),
        ("integer", ".text", None),
        ("integer", ".text.*", None),
        ("integer", ".null", None),
        ("number", ".whole", 7),
        ("number", ".float", 1.5),
        ("number", ".text", None),
        ("boolean", ".yes", True),
        ("boolean", ".whole", None),
        ("date", ".whole", None),
        ("date", ".day", "<invalid>"),
        ("date", ".text", "<invalid>"),
        ("date", ".empty", "<unknown>"),
        ("date", ".zero", "<unknown>"),
        ("date", ".future", "<invalid>"),
        ("date", ".missing", None),
    ],
)
def test_a_cell_is_of_the_type_of_its_column(kind: str, path: str, cell: object) -> None:
    found = PrinterColumn(kind, path).cell(DATA)
    assert found == cell
    assert type(found) is type(cell)


def test_a_date_is_shown_as_an_age() -> None:
    age = PrinterColumn("date", ".at").cell({"at": "2001-01-01T00:00:00+02:00"})
    assert isinstance(age, str)
    assert "y" in age


def test_only_the_first_action_makes_the_cell() -> None:
    assert PrinterColumn("string", ".text}{.whole").cell(DATA) == "héllo"
    assert PrinterColumn("string", ".missing}{.whole").cell(DATA) is None


def test_a_path_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(JSONPathError):
        PrinterColumn("string", ".a[x]")
