"""Work grows as the values do, and not faster: calls of this package's functions are counted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.schema.asking import compiled

ITEM = {
    "type": "object",
    "required": ["k"],
    "properties": {
        "k": {"type": "string", "maxLength": 10},
        "n": {"type": "integer", "maximum": 5, "default": 1},
        "m": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^v"}},
    },
    "anyOf": [{"required": ["n"]}, {"properties": {"k": {"minLength": 1}}}],
}
SCHEMA = compiled(
    keyed={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": ITEM},
    set={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    map={"type": "object", "additionalProperties": ITEM},
    resources={"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": True}},
)


def an_object(size: int, *, wrong: bool = False) -> dict[str, Any]:
    def item(number: int) -> dict[str, Any]:
        return {"k": f"k{number}", "n": 9 if wrong else 1, "m": {"a": "v", "b": "v"}, "odd": {"x": 1}}

    return {
        "keyed": [item(number) for number in range(size)],
        "set": [f"v{number}" for number in range(size)],
        "map": {f"m{number}": item(number) for number in range(size)},
        "resources": [{"apiVersion": "v1", "kind": "A", "metadata": {"name": f"r{number}"}} for number in range(size)],
    }


def calls(work: Callable[[], object]) -> int:
    """Return the number of calls of functions of the package."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" and "steersman/schema" in frame.f_code.co_filename

    sys.setprofile(trace)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def works(size: int) -> dict[str, Callable[[], object]]:
    fitted, wrong = an_object(size), an_object(size, wrong=True)
    SCHEMA.fit(fitted)
    SCHEMA.fit(wrong)
    reversed_ = {**wrong, "keyed": wrong["keyed"][::-1]}
    fresh = an_object(size)
    return {
        "validate": lambda: SCHEMA.validate(fitted),
        "validate wrong": lambda: SCHEMA.validate(wrong),
        "update": lambda: SCHEMA.validate_update(wrong, fitted),
        "update in another order": lambda: SCHEMA.validate_update(reversed_, wrong),
        "update of the same": lambda: SCHEMA.validate_update(wrong, an_object(size, wrong=True)),
        "fit": lambda: SCHEMA.fit(fresh, strict=True),
        "default": lambda: SCHEMA.default(an_object(size)),
        "lists": lambda: SCHEMA.validate_lists(wrong, fitted),
        "embedded": lambda: SCHEMA.validate_embedded(fitted),
    }


@pytest.mark.parametrize("name", list(works(1)))
def test_four_times_as_many_values_take_four_times_the_work(name: str) -> None:
    few, many = (calls(works(size)[name]) for size in (50, 200))
    assert few > 0
    assert many <= 4.5 * few
