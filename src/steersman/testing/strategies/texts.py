"""Strategies for texts that Kubernetes reads: names, quantities, durations, and texts of the formats of schemas."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

_LOWER: Final = "abcdefghijklmnopqrstuvwxyz"
_DIGITS: Final = "0123456789"
_HEX: Final = "0123456789abcdef"
_UNUSUAL: Final = "-_.:/ é漢😀\"'\\{}<>%\n\t"
"""Characters that programs which join texts get wrong."""
_UNITS: Final = ("", "m", "k", "M", "G", "Ki", "Mi", "Gi")


def names(most: int = 20) -> SearchStrategy[str]:
    """Return a strategy for DNS labels, such as names of objects: at most `most` characters, 63 at the most."""
    tails = st.text(_LOWER + _DIGITS + "-", max_size=min(most, 63) - 1)
    return st.tuples(st.sampled_from(_LOWER), tails).map(lambda parts: "".join(parts).rstrip("-"))


def label_keys() -> SearchStrategy[str]:
    """Return a strategy for keys of labels and annotations, with and without a prefix."""
    return st.one_of(names(), names().map(lambda name: f"example.com/{name}"))


def label_values() -> SearchStrategy[str]:
    """Return a strategy for values of labels."""
    return st.one_of(names(), st.just(""), names(6).map(lambda name: f"{name}_1.A"))


def quantities(least: int = 0) -> SearchStrategy[str]:
    """Return a strategy for quantities of resources, from `least` units on."""
    return st.builds(lambda number, unit: f"{number}{unit}", st.integers(max(least, 0), 1000), st.sampled_from(_UNITS))


def durations() -> SearchStrategy[str]:
    """Return a strategy for durations in Go's form, such as `1h30m`."""
    parts = st.tuples(st.integers(0, 99), st.sampled_from(("s", "m", "h", "ms")))
    return st.one_of(
        st.sampled_from(("0s", "1s", "30s", "5m", "1h", "1h30m0s")),
        st.lists(parts, min_size=1, max_size=2).map(lambda found: "".join(f"{n}{unit}" for n, unit in found)),
    )


def moments() -> SearchStrategy[str]:
    """Return a strategy for dates with times (RFC 3339)."""
    seconds = st.integers(0, 4_102_444_799)
    return seconds.map(lambda each: datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def plain_texts(least: int = 0, most: int | None = None) -> SearchStrategy[str]:
    """Return a strategy for texts without a form, some with unusual characters."""
    longest = least + 16 if most is None else min(most, least + 16)
    plain = st.text(_LOWER + _DIGITS + "-", min_size=least, max_size=longest)
    return st.one_of(plain, st.text(_LOWER + _UNUSUAL, min_size=least, max_size=longest))


def _hexadecimal(count: int) -> SearchStrategy[str]:
    return st.text(_HEX, min_size=count, max_size=count)


def _uuids() -> SearchStrategy[str]:
    return st.uuids(version=4).map(str)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


_BYTES: Final = st.integers(0, 255).map(str)

FORMATS: Final[Mapping[str, SearchStrategy[str]]] = {
    "bsonobjectid": _hexadecimal(24),
    "byte": st.binary(min_size=1, max_size=12).map(_encoded),
    "cidr": st.one_of(
        st.builds(lambda byte, bits: f"10.{byte}.0.0/{bits}", _BYTES, st.integers(16, 32)), st.just("2001:db8::/64")
    ),
    "creditcard": st.sampled_from(("4111111111111111", "5555555555554444")),
    "date": moments().map(lambda text: text[:10]),
    "datetime": moments(),
    "duration": durations(),
    "email": names().map(lambda name: f"{name}@example.com"),
    "hexcolor": _hexadecimal(6).map(lambda text: f"#{text}"),
    "hostname": names().map(lambda name: f"{name.replace('-', '')}.example.com"),
    "ipv4": st.builds("192.0.{}.{}".format, _BYTES, _BYTES),
    "ipv6": st.one_of(st.just("::1"), _hexadecimal(4).map(lambda text: f"2001:db8::{text}")),
    "isbn": st.sampled_from(("9780306406157", "0306406152")),
    "isbn10": st.just("0306406152"),
    "isbn13": st.just("9780306406157"),
    "k8slongname": st.lists(names(), min_size=1, max_size=3).map(".".join),
    "k8sshortname": names(),
    "mac": _hexadecimal(12).map(lambda text: ":".join(text[at : at + 2] for at in range(0, 12, 2))),
    "password": plain_texts(),
    "rgbcolor": st.builds("rgb({},{},{})".format, _BYTES, _BYTES, _BYTES),
    "ssn": st.integers(0, 999_999_999).map(lambda n: f"{n:09d}").map(lambda t: f"{t[:3]}-{t[3:5]}-{t[5:]}"),
    "uri": st.builds("https://{}.example.com/{}".format, names(), names()),
    "uuid": _uuids(),
    "uuid3": st.just("6fa459ea-ee8a-3ca4-894e-db77e160355e"),
    "uuid4": _uuids(),
    "uuid5": st.just("886313e1-3b8a-5372-9b90-0c9aee199e5d"),
}
"""The strategy of each format that the server validates, by its normalized name."""
