"""Addresses as Go's netip reads them, with its words, in time linear in the text."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.cel.library.addresses import CIDRS, IPS
from steersman.cel.values import EvaluationError
from tests.counted_work import grows_too_fast


def function(name: str) -> Any:
    return (IPS.functions.get(name) or CIDRS.functions[name])[0].call


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("::", "::"),
        ("1::", "1::"),
        ("::1", "::1"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
        ("::1.2.3.4", "::102:304"),
        ("1.2.3.4", "1.2.3.4"),
        ("FE80:0::00ab", "fe80::ab"),
    ],
)
def test_an_address_is_read(text: str, canonical: str) -> None:
    assert str(function("ip")(text).address) == canonical
    assert function("isIP")(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "unable to parse IP"),
        ("1%", "missing IPv6 address"),
        ("::%", "zone must be a non-empty string"),
        ("12345::", 'each group must have 4 or less digits (at "12345::")'),
        ("1:g::", 'each colon-separated field must have at least one digit (at "g::")'),
        (":", 'each colon-separated field must have at least one digit (at ":")'),
        ("1:2x", 'unexpected character, want colon (at "x")'),
        ("1:2:", 'colon must be followed by more characters (at ":")'),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
        ("1:2", "address string too short"),
        ("1:2:3:4:5:6:7:8::", "the :: must expand to at least one field of zeros"),
        ("1:2:1.2.3.4", 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")'),
        (
            "1::2:3:4:5:6:7:1.2.3.4",
            'too many hex fields to fit an embedded IPv4 at the end of the address (at "1.2.3.4")',
        ),
        ("::1.2.3", "IPv4 address too short"),
        ("::1.2.3.256", "IPv4 field has value >255"),
        ("1..2.3", 'IPv4 field must have at least one digit (at ".2.3")'),
        ("1.2.3.4\0", r'unexpected character (at "\x00")'),
    ],
)
def test_what_is_wrong_with_one_is_told_in_go_s_words(text: str, fault: str) -> None:
    with pytest.raises(EvaluationError) as error:
        function("ip")(text)
    assert str(error.value).endswith(f": {fault}")
    assert not function("isIP")(text)


def test_a_zone_is_refused() -> None:
    with pytest.raises(EvaluationError, match='IP address "fe80::1%a%b" with zone value is not allowed'):
        function("ip")("fe80::1%a%b")
    with pytest.raises(EvaluationError, match="IPv6 zones cannot be present in a prefix"):
        function("cidr")("fe80::1%a/64")


@pytest.mark.parametrize("name", ["isIP", "isCIDR"])
@pytest.mark.parametrize("seed", [":", "1:", "::", "f", "1.", ".", "%", "1:2:", "/"])
def test_work_is_in_proportion_to_the_text(name: str, seed: str) -> None:
    assert grows_too_fast(lambda size: lambda: function(name)("1:" + seed * size * 100 + "/8")) == []
