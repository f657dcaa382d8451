"""Semantic versions (semver.org 2.0.0), parsed and ordered as by github.com/blang/semver."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from steersman.net.ascii import is_digits
from steersman.work.patterns import late_pattern

_NUMBER: Final = r"0|[1-9][0-9]*"
_IDENTIFIER: Final = rf"(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_PATTERN: Final = late_pattern(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_MAX_LENGTH: Final = 4096
_MAX_NUMBER: Final = 2**64 - 1


class Semver(NamedTuple):
    """A version without its build metadata; versions compare by precedence."""

    numbers: tuple[int, int, int] = (0, 0, 0)
    released: bool = True
    """True for a release. A pre-release (False) sorts before its release."""
    prerelease: tuple[tuple[int, int, str], ...] = ()
    """Each identifier as (0, number, "") or (1, 0, text), so that numbers sort before texts."""


ZERO: Final = Semver()


def parse_semver(text: str) -> Semver | None:
    """Parse a version; None if it is malformed or has numbers of more than 64 bits."""
    match = _PATTERN.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    major, minor, patch = (_number(match[index]) for index in (1, 2, 3))
    identifiers = match[4].split(".") if match[4] else []
    values = [_number(each) if is_digits(each) else 0 for each in identifiers]
    if major is None or minor is None or patch is None or None in values:
        return None
    prerelease = tuple(
        (0, value or 0, "") if is_digits(each) else (1, 0, each)
        for each, value in zip(identifiers, values, strict=True)
    )
    return Semver((major, minor, patch), not prerelease, prerelease)


def _number(digits: str) -> int | None:
    value = int(digits) if len(digits) <= 20 else _MAX_NUMBER + 1
    return value if value <= _MAX_NUMBER else None
