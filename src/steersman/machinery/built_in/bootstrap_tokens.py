"""Secrets that hold bootstrap tokens, by which nodes join (cluster-bootstrap `token/api`, `util/secrets`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from steersman.machinery.values import times

SECRET_TYPE: Final = "bootstrap.kubernetes.io/token"
PREFIX: Final = "bootstrap-token-"
"""What the name of a secret begins with; the token's id follows."""
USER_PREFIX: Final = "system:bootstrap:"
DEFAULT_GROUP: Final = "system:bootstrappers"
TOKEN_ID: Final = "token-id"
TOKEN_SECRET: Final = "token-secret"
EXPIRATION: Final = "expiration"
GROUPS: Final = "auth-extra-groups"
AUTHENTICATES: Final = "usage-bootstrap-authentication"
"""The member whose value "true" lets the token stand for a user."""
SIGNS: Final = "usage-bootstrap-signing"
"""The same for signing the cluster's information."""

_TOKEN: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII)
_GROUP: Final = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII)


def parse_token(token: str) -> tuple[str, str] | None:
    """The id and the secret of a bootstrap token; None for what is none."""
    found = _TOKEN.fullmatch(token)
    return None if found is None else (found[1], found[2])


def text_of(data: Mapping[str, bytes], key: str) -> str:
    """A member of a secret's data, "" if it is not there."""
    return data.get(key, b"").decode("utf-8", "surrogateescape")


def seconds_left(data: Mapping[str, bytes], now: float) -> float | None:
    """How long the token is good for at `now` (seconds since the epoch), 0 if its time is over or cannot be read; None
    if it has no end."""
    expiration = text_of(data, EXPIRATION)
    if not expiration:
        return None
    try:
        return max(0.0, times.parse(expiration).timestamp() - now)
    except times.TimeError:
        return 0.0


def has_expired(data: Mapping[str, bytes], now: float) -> bool:
    """Whether the token has ended, or nobody can tell when it does."""
    return seconds_left(data, now) == 0


def groups_of(data: Mapping[str, bytes]) -> tuple[str, ...] | None:
    """The groups of who has the token, sorted; None if one of those in the secret has no name that is allowed."""
    extra = text_of(data, GROUPS)
    names = extra.split(",") if extra else []
    if not all(_GROUP.fullmatch(each) for each in names):
        return None
    return tuple(sorted({DEFAULT_GROUP, *names}))
