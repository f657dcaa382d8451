"""Tests of the requests of the tool that compares schemas with a reference server."""

from __future__ import annotations

from random import Random

from steersman.machinery.errors.field import Path
from steersman.schema import SchemaChecks, schema_errors
from tools.compare_schemas.schemas import oddly, schema
from tools.compare_schemas.values import value


def is_refused(plain: dict[str, object]) -> bool:
    return bool(schema_errors(plain, Path("schema"), SchemaChecks(), status_enabled=False))


def test_a_seed_makes_the_same_again() -> None:
    one, other = (oddly(Random(7), schema(Random(7))) for _ in range(2))
    assert one == other
    assert value(Random(7), one) == value(Random(7), other)


def test_most_schemas_are_sound_and_most_odd_ones_are_not() -> None:
    sound = odd = 0
    for seed in range(200):
        plain: dict[str, object] = {"type": "object", "properties": {"spec": schema(Random(seed))}}
        sound += not is_refused(plain)
        odd += is_refused(oddly(Random(seed), plain))
    assert sound > 150
    assert odd > 120
