"""Numbers of expressions of CEL at their limits."""

from __future__ import annotations

from random import Random

import pytest

from steersman.nodes.stages.conditions import Conditions, Failed

_CONDITIONS = Conditions(Random(1), "self")


@pytest.mark.parametrize(
    "text",
    [
        "Quantity('1') * 1e308",
        "Quantity('1') / 1e-308",
        "Quantity('1') * (1e308 * 10.0)",
        "Quantity('1') / (0.0 / 0.0)",
        "Quantity('1e999')",
        "Quantity('1E')" + " * 9223372036854775807" * 20,
        "[Quantity('1E')" + " * 9223372036854775807" * 20 + "].map(a, a * a.asInteger())[0]",
    ],
)
def test_quantities_beyond_all_numbers_fail(text: str) -> None:
    with pytest.raises(Failed):
        _CONDITIONS.compile(text).number({"self": {}})


@pytest.mark.parametrize(
    ("text", "number"), [("Quantity('3') * 1.5", 4.5), ("Quantity('3') / 2", 1.5), ("Quantity('1m') / 3", 0.0)]
)
def test_quantities_are_multiplied_and_divided(text: str, number: float) -> None:
    assert _CONDITIONS.compile(text).number({"self": {}}) == number
