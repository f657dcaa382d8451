"""Tests that everything that reads a text takes time in proportion to the text.

They cover every function of the package that takes one text, every function of CEL that takes any text, every format of
schemas, and parsers that take more than the text. All are fed with repeated text, between valid beginnings and invalid
ends; formatting the error counts too. Functions are found by their signatures, so that new ones are covered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.cel import types
from steersman.cel.environment import Overload
from steersman.cel.expression import compile_expression
from steersman.cel.library.addresses import CIDR, IP, read_cidr, read_ip
from steersman.cel.library.kubernetes import LIBRARIES, base_environment
from steersman.cel.library.quantities import QUANTITY, read_quantity
from steersman.cel.library.semvers import SEMVER, parse_version
from steersman.cel.library.urls import URL, read_url
from steersman.cel.steps import Frame
from steersman.cel.work import counted_by
from steersman.machinery.codec.strict import decode_object
from steersman.machinery.go.urls import parse as parse_url
from steersman.machinery.values.times import parse as parse_time
from steersman.schema.formats import FORMATS
from tests import feeding, memoised

CALL_LIMIT = 1_000_000


@pytest.fixture(autouse=True)
def _functions_are_fed_themselves() -> Iterator[None]:
    """Feed functions without memoisation: their callers do not let them memoise long texts."""
    memoised.feeds.append(__name__)
    yield
    memoised.feeds.remove(__name__)


OF_PATTERNS = ("matches/", "find/", "findAll/")
"""Functions whose last text is a pattern. `cel.pattern_size` bounds the pattern, and a search has a cost limit."""

SAMPLES: dict[str, Any] = {
    IP.name: read_ip("10.0.0.1"),
    CIDR.name: read_cidr("10.0.0.0/8"),
    QUANTITY.name: read_quantity("1"),
    SEMVER.name: parse_version("1.2.3"),
    URL.name: read_url("http://a/b"),
}
"""Values of types that cannot be made from any text, by type name."""


def argument(type: types.Type, text: str) -> Any:
    """Return a value of a type, made from the text if possible. Raises KeyError for a type without a sample."""
    if type in (types.STRING, types.ANY) or not type.name or type == types.DYN:
        return text
    if type == types.BYTES:
        return text.encode()
    if type in (types.INT, types.UINT):
        return 1
    if type == types.BOOL:
        return True
    if type == types.DOUBLE:
        return 1.0
    if type.name == "list":
        return [argument(type.params[0], text)] * 2
    return SAMPLES[type.name]


def overloads() -> Iterator[tuple[str, Overload, int]]:
    """Yield every function of CEL that takes a text, with the index of the text among its arguments."""
    for library in LIBRARIES:
        for name, found in library.functions.items():
            for overload in found:
                for place, each in enumerate(overload.args):
                    takes_text = each in (types.STRING, types.BYTES) or (
                        each.name == "list" and each.params[0] == types.STRING
                    )
                    if overload.call is not None and takes_text:
                        yield f"{name}/{overload.id}[{place}]", overload, place


def call(overload: Overload, place: int, others: str) -> Callable[[str], Any]:
    """Return a call with the text at one index and `others` at all others; an empty `others` puts the text everywhere.

    The call has the cost limit of one expression.
    """

    def made(text: str) -> Any:
        assert overload.call is not None
        texts = [text if number == place or not others else others for number in range(len(overload.args))]
        with counted_by(Frame({}, CALL_LIMIT)):
            return overload.call(*map(argument, overload.args, texts))

    return made


PARSERS: dict[str, Callable[[Any], Any]] = {
    "cel": lambda text: compile_expression(text, base_environment()),
    "url of a request": lambda text: parse_url(text, of_request=True),
    "strict JSON": lambda text: decode_object(ConfigMap, text.encode(), "json", want_strict=True),
    "strict YAML": lambda text: decode_object(ConfigMap, text.encode(), "yaml", want_strict=True),
    "text in JSON": lambda text: decode_object(
        ConfigMap, b'{"data":{"a":%b}}' % msgspec.json.encode(text), "json", want_strict=True
    ),
    "value of YAML": lambda text: decode_object(ConfigMap, f"data:\n  a: {text}".encode(), "yaml", want_strict=True),
    "time": lambda text: parse_time(text),
}
"""Parsers that take more than one argument."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_function_of_one_text_takes_time_in_proportion_to_it(part: int) -> None:
    found = list(feeding.functions_of_one_text())
    assert len(found) > 400
    beginnings = ("", "1", "a/")
    slow = {
        name: texts
        for name, function, of_bytes in found[part::8]
        if (texts := feeding.slow_texts(function, of_bytes=of_bytes, beginnings=beginnings))
    }
    assert slow == {}


@pytest.mark.slow
@pytest.mark.parametrize("others", ["", "a", "0"])
def test_every_function_of_cel_takes_time_in_proportion_to_its_text(others: str) -> None:
    found = {
        name: call(overload, place, others)
        for name, overload, place in overloads()
        if not (name.startswith(OF_PATTERNS) and (place or not others))
    }
    assert len(found) > 100
    slow = {name: texts for name, made in found.items() if (texts := feeding.slow_texts(made, beginnings=("", "1:")))}
    assert slow == {}


@pytest.mark.slow
def test_every_format_takes_time_in_proportion_to_the_text() -> None:
    slow = {name: texts for name, judge in FORMATS.items() if (texts := feeding.slow_texts(judge))}
    assert slow == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_takes_time_in_proportion_to_the_text(name: str) -> None:
    assert feeding.slow_texts(PARSERS[name], beginnings=("", "1", "'", "{")) == []


@pytest.mark.slow
def test_what_is_quadratic_is_found() -> None:
    def group(text: str) -> list[str]:
        return [text.split(":")[place] for place in range(text.count(":"))]

    assert feeding.slow_texts(group, beginnings=("",)) == ["'' ':'... ''"]
    assert feeding.slow_texts(str.split, beginnings=("",)) == []
