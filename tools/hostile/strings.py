"""Long texts as readers of each form of text work at them most."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from steersman.machinery.codec.go_types import GoType

from .case import numbered, repeated

Write = Callable[[int], str]
"""JSON of about so many bytes."""

_ANY: Final = ("a", "a.", "a/", "-", ",", "%", "é", "\\", "$(A)")
_QUANTITIES: Final = ("1", "0", "1.", "9e9", "-", "1E")
_DURATIONS: Final = ("1h", "1.", "0h0m", "9")
_BY_NAME: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {
    "schedule": (
        ("every", "@every ", "1h"),
        ("every-zero", "@every ", "0h"),
        ("commas", "", "1,"),
        ("ranges", "", "0-59/1,"),
        ("stars", "", "* "),
        ("zone", "TZ=", "a/"),
    ),
    "timeZone": (("parts", "", "Etc/"),),
    "expression": (
        ("sums", "1", "+1"),
        ("parentheses", "", "("),
        ("nots", "", "!"),
        ("brackets", "", "["),
        ("members", "a", ".b"),
        ("or", "true", "||true"),
        ("conditions", "", "true?"),
        ("text", "'", "a"),
        ("calls", "a", ".b()"),
        ("escapes", "'", "\\u0061"),
        ("numbers", "", "1"),
        ("spaces", "1", " "),
        ("negatives", "", "-"),
    ),
    "image": (("colons", "a", ":a"), ("digests", "a", "@a"), ("parts", "", "a/")),
    "ip": (("colons", "", ":"), ("groups", "", "0:"), ("dots", "", "1.")),
    "cidr": (("colons", "", ":"), ("slashes", "10.0.0.0", "/8"), ("groups", "", "0:")),
    "command": (("references", "", "$(A)"),),
    "rawSelector": (("terms", "a=b", ",a=b"), ("values", "a in (b", ",b")),
    "labelSelector": (("terms", "a=b", ",a=b"), ("values", "a in (b", ",b")),
    "fieldSelector": (("terms", "a=b", ",a=b"),),
    "url": (("percent", "https://a/", "%41"), ("parts", "https://a/", "a/")),
    "request": (("base64", "", "LS0tLS1CRUdJTi"),),
    "caBundle": (("base64", "", "LS0tLS1CRUdJTi"),),
    "pattern": (("groups", "", "("), ("stars", "a", "*")),
}
_ALIASES: Final = {
    "cel": "expression",
    "rule": "expression",
    "messageExpression": "expression",
    "podIP": "ip",
    "hostIP": "ip",
    "clusterIP": "ip",
    "loadBalancerIP": "ip",
    "podCIDR": "cidr",
    "startingDeadlineSeconds": "",
    "args": "command",
}


def texts_for(type_: GoType, name: str) -> Iterator[tuple[str, Write]]:
    """Labels and writers of long values for a field of that type and name."""
    if type_.kind == "own":
        if type_.name == "api.resource.Quantity":
            yield from ((f"quantity-{unit}", _repeating("", unit)) for unit in _QUANTITIES)
            yield "number", lambda size: "1" * size
            yield "exponent", lambda size: "1e" + "9" * size
        elif type_.name == "meta.v1.Duration":
            yield from ((f"duration-{unit}", _repeating("", unit)) for unit in _DURATIONS)
        elif type_.name in ("meta.v1.Time", "meta.v1.MicroTime"):
            yield "time-digits", _repeating("2026-01-01T00:00:00.", "1")
        elif type_.name == "util.intstr.IntOrString":
            yield "percent", lambda size: json.dumps("1" * size + "%")
            yield "number", lambda size: "1" * size
        else:
            yield "deep", _deep
            yield "wide", _wide
    elif type_.kind == "string":
        yield from ((f"text-{number}", _repeating("", unit)) for number, unit in enumerate(_ANY))
        for label, head, unit in _BY_NAME.get(_ALIASES.get(name, name), ()):
            yield label, _repeating(head, unit)
    elif type_.kind in ("int32", "int64", "float64"):
        yield "digits", lambda size: "1" * size
        yield "zeros", lambda size: "0." + "0" * size + "1"
        yield "exponent", lambda size: "1e" + "9" * size
        yield "exponent-zeros", lambda size: "1e" + "0" * size + "1"
    elif type_.kind == "bytes":
        yield "base64", _repeating("", "AAEC")
        yield "no-base64", _repeating("", "=")


def _repeating(head: str, unit: str) -> Write:
    return lambda size: json.dumps(head + repeated(unit, size), ensure_ascii=False)


def _deep(size: int) -> str:
    depth = size // 6
    return '{"a":' * depth + "1" + "}" * depth


def _wide(size: int) -> str:
    return "{" + ",".join(numbered('"k{i}":{}', size)) + "}"
