"""The function `semver("1.2.3")` and comparisons of versions (apiserver `cel/library` semver; semver.org 2.0.0)."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from steersman.cel.environment import Library, Overload
from steersman.cel.types import BOOL, INT, STRING, object_type
from steersman.cel.values import MAX_UINT, EvaluationError, Extension
from steersman.machinery.go.strings import to_lower
from steersman.work.patterns import late_pattern

SEMVER: Final = object_type("kubernetes.Semver")

_NUMBERS: Final = late_pattern("[0-9]*", re.ASCII)
_WORD: Final = late_pattern("[0-9A-Za-z-]*", re.ASCII)


class SemverValue(Extension):
    """A version. The part after a plus, `build`, is ignored in comparisons."""

    __slots__ = ("build", "numbers", "prerelease")
    cel_type = SEMVER

    def __init__(
        self, numbers: tuple[int, int, int], prerelease: tuple[int | str, ...], build: tuple[str, ...] = ()
    ) -> None:
        self.numbers: Final = numbers
        self.prerelease: Final = prerelease
        self.build: Final = build

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemverValue) and compare_versions(self, other) == 0

    def __hash__(self) -> int:
        return hash((self.numbers, self.prerelease))


def compare_versions(one: SemverValue, other: SemverValue) -> int:
    """Return -1, 0 or 1."""
    left, right = _order(one), _order(other)
    return (left > right) - (left < right)


def _order(version: SemverValue) -> tuple[Any, ...]:
    # A version without a pre-release is later than those with one; numbers are earlier than words.
    parts = tuple((isinstance(part, str), part) for part in version.prerelease)
    return version.numbers, not parts, parts


def parse_version(text: str) -> SemverValue:
    """Parse a version. Raises EvaluationError with the message of Go's blang/semver."""
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    patch, plus, build = parts[2].partition("+")
    patch, dash, prerelease = patch.partition("-")
    numbers = (_number("Major", parts[0]), _number("Minor", parts[1]), _number("Patch", patch))
    found = tuple(map(_prerelease, prerelease.split("."))) if dash else ()
    words = tuple(build.split(".")) if plus else ()
    for part in words:
        if not part:
            raise EvaluationError("Build meta data is empty")
        if not _WORD.fullmatch(part):
            raise EvaluationError(f"Invalid character(s) found in build meta data {json.dumps(part)}")
    return SemverValue(numbers, found, words)


def _number(name: str, text: str) -> int:
    if not _NUMBERS.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in {to_lower(name)} number {json.dumps(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name} number must not contain leading zeroes {json.dumps(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > MAX_UINT:
        raise EvaluationError(f"strconv.ParseUint: parsing {json.dumps(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if _NUMBERS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {json.dumps(text)}")
        return _unsigned(text)
    if not _WORD.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in prerelease {json.dumps(text)}")
    return text


def _normalized(text: str) -> str:
    """Return a version with missing parts added, and without a `v` and leading zeros."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if re.search("[+-]", parts[-1]):
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if "0" <= stripped[:1] <= "9" else "0" + stripped


def _semver(text: str, normalize: bool = False) -> SemverValue:
    return parse_version(_normalized(text) if normalize else text)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvaluationError:
        return False
    return True


_TWO: Final = (SEMVER, SEMVER)


def _part(name: str, index: int) -> tuple[Overload, ...]:
    return (Overload(f"semver_{name}", (SEMVER,), INT, lambda value: value.numbers[index], member=True),)


SEMVERS: Final = Library(
    functions={
        "semver": (
            Overload("string_to_semver", (STRING,), SEMVER, _semver),
            Overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _semver),
        ),
        "isSemver": (
            Overload("is_semver_string", (STRING,), BOOL, _is_semver),
            Overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver),
        ),
        "isGreaterThan": (
            Overload(
                "semver_is_greater_than", _TWO, BOOL, lambda one, other: compare_versions(one, other) > 0, member=True
            ),
        ),
        "isLessThan": (
            Overload(
                "semver_is_less_than", _TWO, BOOL, lambda one, other: compare_versions(one, other) < 0, member=True
            ),
        ),
        "compareTo": (Overload("semver_compare_to", _TWO, INT, compare_versions, member=True),),
        "major": _part("major", 0),
        "minor": _part("minor", 1),
        "patch": _part("patch", 2),
    }
)
