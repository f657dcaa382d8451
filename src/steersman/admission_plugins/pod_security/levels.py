"""Which Pod Security Standard a namespace asks for: its labels, their levels and versions, and what holds without them.

Follows https://kubernetes.io/docs/concepts/security/pod-security-admission/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import force_setattr

from steersman.machinery.errors.field import FieldError, Path, invalid

PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
_LEVELS: Final = (PRIVILEGED, BASELINE, RESTRICTED)
_WRONG_LEVEL: Final = f"must be one of {', '.join(_LEVELS)}"
_WRONG_VERSION: Final = 'must be "latest" or "v1.x"'

LATEST: Final = 1 << 30
"""The minor version that stands for `latest`."""

_PREFIX: Final = "pod-security.kubernetes.io/"
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]{0,18})", re.ASCII)
_LABELS: Final = Path("metadata", "labels")


class LevelVersion(NamedTuple):
    """A level as it was in a minor version of Kubernetes 1; prints as `restricted:v1.24`."""

    level: str
    minor: int

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"

    def equivalent(self, other: LevelVersion) -> bool:
        """Whether both allow the same: what is privileged is so in every version."""
        return self == other or self.level == other.level == PRIVILEGED


_OPEN: Final = LevelVersion(PRIVILEGED, LATEST)


class Policy(Struct, frozen=True):
    """What a namespace asks for. `errors` are labels that say nothing known."""

    enforce: LevelVersion = _OPEN
    audit: LevelVersion = _OPEN
    warn: LevelVersion = _OPEN
    errors: tuple[FieldError, ...] = ()
    is_open: bool = False
    """True if any pod will do and every label could be read; made from the other fields."""

    def __post_init__(self) -> None:
        force_setattr(self, "is_open", self.fully_privileged and not self.errors)

    @property
    def fully_privileged(self) -> bool:
        """Whether any pod will do."""
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED

    def equivalent(self, other: Policy) -> bool:
        """Whether both ask for the same."""
        return (
            self.enforce.equivalent(other.enforce)
            and self.audit.equivalent(other.audit)
            and self.warn.equivalent(other.warn)
        )


NO_POLICY: Final = Policy()


def policy_of(labels: Mapping[str, str], defaults: Policy = NO_POLICY) -> Policy:
    """The policy in the labels of a namespace, that of `defaults` where they say nothing.

    Where a label cannot be read, `enforce` is restricted, audit and warn are privileged, versions are the latest.
    Without a word about warnings, what will be refused is warned of, if it is more than what would be anyway.
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
    """Whether labels say anything about a mode."""
    return _PREFIX + mode in labels or f"{_PREFIX}{mode}-version" in labels


def level_of(text: str) -> str:
    """A level by its name. Raises ValueError for any other text."""
    if text not in _LEVELS:
        raise ValueError(_WRONG_LEVEL)
    return text


def minor_of(text: str) -> int:
    """The minor version in `v1.24`, LATEST for `latest`. Raises ValueError for any other text."""
    if text == "latest":
        return LATEST
    found = _VERSION.fullmatch(text)
    if found is None or int(found[1]) >= 1 << 63:
        raise ValueError(_WRONG_VERSION)
    return int(found[1])


def stricter(one: str, other: str) -> bool:
    """Whether a level allows less than another."""
    return _LEVELS.index(one) > _LEVELS.index(other)


def _read(
    labels: Mapping[str, str], mode: str, default: LevelVersion, errors: list[FieldError], *, otherwise: str
) -> tuple[LevelVersion, bool]:
    """What the labels of a mode say, and whether its level is given and good."""
    level, minor = default
    good = False
    key = _PREFIX + mode
    if (given := labels.get(key)) is not None:
        try:
            level, good = level_of(given), True
        except ValueError as error:
            level = otherwise
            errors.append(invalid(_LABELS[key], given, str(error)))
    key = f"{key}-version"
    if (given := labels.get(key)) is not None:
        try:
            minor = minor_of(given)
        except ValueError as error:
            minor = LATEST
            errors.append(invalid(_LABELS[key], given, str(error)))
    return LevelVersion(level, minor), good
