"""Levels of the Pod Security Standards, and the policy that the labels of a namespace select.

Follows https://kubernetes.io/docs/concepts/security/pod-security-admission/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import force_setattr

from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.work.patterns import late_pattern

PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
_LEVELS: Final = (PRIVILEGED, BASELINE, RESTRICTED)
_WRONG_LEVEL: Final = f"must be one of {', '.join(_LEVELS)}"
_WRONG_VERSION: Final = 'must be "latest" or "v1.x"'

LATEST: Final = 1 << 30
"""Minor version that represents `latest`."""

_PREFIX: Final = "pod-security.kubernetes.io/"
_VERSION: Final = late_pattern(r"v1\.(0|[1-9][0-9]{0,18})", re.ASCII)
_LABELS: Final = Path("metadata", "labels")


class LevelVersion(NamedTuple):
    """A level in a minor version of Kubernetes 1; prints as `restricted:v1.24`."""

    level: str
    minor: int

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"

    def equivalent(self, other: LevelVersion) -> bool:
        """Return True if both allow the same pods: privileged is the same in every version."""
        return self == other or self.level == other.level == PRIVILEGED


_OPEN: Final = LevelVersion(PRIVILEGED, LATEST)


class Policy(Struct, frozen=True):
    """Pod Security policy of a namespace; `errors` are about labels with unknown values."""

    enforce: LevelVersion = _OPEN
    audit: LevelVersion = _OPEN
    warn: LevelVersion = _OPEN
    errors: tuple[FieldError, ...] = ()
    is_open: bool = False
    """True if every pod is allowed and all labels could be parsed; computed from the other fields."""

    def __post_init__(self) -> None:
        force_setattr(self, "is_open", self.fully_privileged and not self.errors)

    @property
    def fully_privileged(self) -> bool:
        """Return True if every mode allows every pod."""
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED

    def equivalent(self, other: Policy) -> bool:
        """Return True if both policies allow the same pods in every mode."""
        return (
            self.enforce.equivalent(other.enforce)
            and self.audit.equivalent(other.audit)
            and self.warn.equivalent(other.warn)
        )


NO_POLICY: Final = Policy()


def policy_of(labels: Mapping[str, str], defaults: Policy = NO_POLICY) -> Policy:
    """Return the policy in the labels of a namespace; missing labels have the values of `defaults`.

    For a label that cannot be parsed, the level of `enforce` is restricted, the levels of audit and warn are
    privileged, and a version is the latest. Without a label for warn, its level is that of `enforce`, if that is
    stricter than the default.
    """
    if not any(key.startswith(_PREFIX) for key in labels):
        return defaults
    errors: list[FieldError] = []
    enforce, enforce_good = _read(labels, "enforce", defaults.enforce, errors, otherwise=RESTRICTED)
    audit, _ = _read(labels, "audit", defaults.audit, errors, otherwise=PRIVILEGED)
    warn, _ = _read(labels, "warn", defaults.warn, errors, otherwise=PRIVILEGED)
    if f"{_PREFIX}warn" not in labels and enforce_good and stricter(enforce.level, warn.level):
        minor = warn.minor if f"{_PREFIX}warn-version" in labels else enforce.minor
        warn = LevelVersion(enforce.level, minor)
    return Policy(enforce, audit, warn, tuple(errors))


def labelled(labels: dict[str, str], mode: str) -> bool:
    """Return True if labels set the level or version of a mode."""
    return _PREFIX + mode in labels or f"{_PREFIX}{mode}-version" in labels


def level_of(text: str) -> str:
    """Return the text if it names a level. Raises ValueError for any other text."""
    if text not in _LEVELS:
        raise ValueError(_WRONG_LEVEL)
    return text


def minor_of(text: str) -> int:
    """Return the minor version in `v1.24`, LATEST for `latest`. Raises ValueError for any other text."""
    if text == "latest":
        return LATEST
    match = _VERSION.fullmatch(text)
    if match is None or int(match[1]) >= 1 << 63:
        raise ValueError(_WRONG_VERSION)
    return int(match[1])


def stricter(one: str, other: str) -> bool:
    """Return True if level `one` allows less than level `other`."""
    return _LEVELS.index(one) > _LEVELS.index(other)


def _read(
    labels: Mapping[str, str], mode: str, default: LevelVersion, errors: list[FieldError], *, otherwise: str
) -> tuple[LevelVersion, bool]:
    """Return the level and version in the labels of a mode, and True if the level is set to a known value."""
    level, minor = default
    good = False
    key = _PREFIX + mode
    if (text := labels.get(key)) is not None:
        try:
            level, good = level_of(text), True
        except ValueError as error:
            level = otherwise
            errors.append(invalid(_LABELS[key], text, str(error)))
    key = f"{key}-version"
    if (text := labels.get(key)) is not None:
        try:
            minor = minor_of(text)
        except ValueError as error:
            minor = LATEST
            errors.append(invalid(_LABELS[key], text, str(error)))
    return LevelVersion(level, minor), good
