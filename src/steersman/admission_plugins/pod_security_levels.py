"""Which Pod Security Standard a namespace asks for: its labels, their levels and versions.

Follows https://kubernetes.io/docs/concepts/security/pod-security-admission/.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from steersman.machinery.field import FieldError, Path, invalid

PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
_LEVELS: Final = (PRIVILEGED, BASELINE, RESTRICTED)

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


_OPEN: Final = LevelVersion(PRIVILEGED, LATEST)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a namespace asks for. `errors` are labels that say nothing known."""

    enforce: LevelVersion = _OPEN
    audit: LevelVersion = _OPEN
    warn: LevelVersion = _OPEN
    errors: tuple[FieldError, ...] = ()

    @property
    def fully_privileged(self) -> bool:
        """Whether any pod will do."""
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED


NO_POLICY: Final = Policy()


def policy_of(labels: dict[str, str]) -> Policy:
    """The policy in the labels of a namespace.

    Where a label cannot be read, `enforce` is restricted, audit and warn are privileged, versions are the latest.
    Without a word about warnings, what will be refused is warned of.
    """
    if not any(key.startswith(_PREFIX) for key in labels):
        return NO_POLICY
    errors: list[FieldError] = []
    enforce, enforce_good = _read(labels, "enforce", errors, otherwise=RESTRICTED)
    audit, _ = _read(labels, "audit", errors, otherwise=PRIVILEGED)
    warn, _ = _read(labels, "warn", errors, otherwise=PRIVILEGED)
    if f"{_PREFIX}warn" not in labels and enforce_good and enforce.level != PRIVILEGED:
        minor = warn.minor if f"{_PREFIX}warn-version" in labels else enforce.minor
        warn = LevelVersion(enforce.level, minor)
    return Policy(enforce, audit, warn, tuple(errors))


def stricter(one: str, other: str) -> bool:
    """Whether a level allows less than another."""
    return _LEVELS.index(one) > _LEVELS.index(other)


def _read(labels: dict[str, str], mode: str, errors: list[FieldError], *, otherwise: str) -> tuple[LevelVersion, bool]:
    """What the labels of a mode say, and whether its level is given and good."""
    level, minor, good = PRIVILEGED, LATEST, False
    key = _PREFIX + mode
    if (given := labels.get(key)) is not None:
        good = given in _LEVELS
        level = given if good else otherwise
        if not good:
            errors.append(invalid(_LABELS[key], given, f"must be one of {', '.join(_LEVELS)}"))
    key = f"{key}-version"
    if (given := labels.get(key)) is not None and given != "latest":
        found = _VERSION.fullmatch(given)
        if found and int(found[1]) < 1 << 63:
            minor = int(found[1])
        else:
            errors.append(invalid(_LABELS[key], given, 'must be "latest" or "v1.x"'))
    return LevelVersion(level, minor), good
