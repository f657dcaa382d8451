"""Secrets of bootstrap tokens, with which nodes join a cluster (cluster-bootstrap `token/api`, `util/secrets`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from steersman.machinery.values import times
from steersman.work.patterns import late_pattern

SECRET_TYPE: Final = "bootstrap.kubernetes.io/token"
PREFIX: Final = "bootstrap-token-"
"""The prefix of the secret's name; the token's id follows."""
USER_PREFIX: Final = "system:bootstrap:"
DEFAULT_GROUP: Final = "system:bootstrappers"
TOKEN_ID: Final = "token-id"
TOKEN_SECRET: Final = "token-secret"
EXPIRATION: Final = "expiration"
GROUPS: Final = "auth-extra-groups"
AUTHENTICATES: Final = "usage-bootstrap-authentication"
"""The key whose value "true" allows authentication with the token."""
SIGNS: Final = "usage-bootstrap-signing"
"""The key whose value "true" allows signing of the cluster-info ConfigMap with the token."""

_TOKEN: Final = late_pattern(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII)
_GROUP: Final = late_pattern(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII)


def parse_token(token: str) -> tuple[str, str] | None:
    """Return the id and the secret of a bootstrap token; None for other text."""
    match = _TOKEN.fullmatch(token)
    return None if match is None else (match[1], match[2])


def value_text(data: Mapping[str, bytes], key: str) -> str:
    """Return a value of a secret's data, "" if it does not exist."""
    return data.get(key, b"").decode("utf-8", "surrogateescape")


def seconds_left(data: Mapping[str, bytes], now: float) -> float | None:
    """Return the seconds until the token expires at `now` (seconds since 1970).

    Returns 0 if it has expired or its expiration is malformed, and None if it never expires.
    """
    expiration = value_text(data, EXPIRATION)
    if not expiration:
        return None
    try:
        return max(0.0, times.parse(expiration).timestamp() - now)
    except times.TimeError:
        return 0.0


def has_expired(data: Mapping[str, bytes], now: float) -> bool:
    """Return True if the token has expired or its expiration is malformed."""
    return seconds_left(data, now) == 0


def parse_groups(data: Mapping[str, bytes]) -> tuple[str, ...] | None:
    """Return the sorted groups of the token's user; None if the secret names a group that is not allowed."""
    extra = value_text(data, GROUPS)
    names = extra.split(",") if extra else []
    if not all(_GROUP.fullmatch(each) for each in names):
        return None
    return tuple(sorted({DEFAULT_GROUP, *names}))
