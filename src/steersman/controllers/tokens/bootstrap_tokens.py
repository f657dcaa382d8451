"""Secrets with which nodes join a cluster: what they say, and until when (k8s.io/cluster-bootstrap)."""

from __future__ import annotations

import re
from typing import Final

from steersman.api.core.v1 import Secret
from steersman.machinery.values import times

SECRET_TYPE: Final = "bootstrap.kubernetes.io/token"
NAMESPACE: Final = "kube-system"
_NAME: Final = re.compile(r"bootstrap-token-([a-z0-9]{6})", re.ASCII)


def seconds_left(secret: Secret, now: float) -> float | None:
    """How long a token is good for, 0 if its time is over or cannot be read; None if it has no end."""
    text = _said(secret, "expiration")
    if not text:
        return None
    try:
        return max(0.0, times.parse(text).timestamp() - now)
    except times.TimeError:
        return 0.0


def signing_token(secret: Secret, now: float) -> tuple[str, str] | None:
    """Id and secret of a token by which the cluster's information is signed; None for one that is not for that."""
    named = _NAME.fullmatch(secret.metadata.name)
    token_id, token = _said(secret, "token-id"), _said(secret, "token-secret")
    if named is None or not token or named[1] != token_id:
        return None
    if seconds_left(secret, now) == 0 or _said(secret, "usage-bootstrap-signing") != "true":
        return None
    return token_id, token


def _said(secret: Secret, key: str) -> str:
    return secret.data.get(key, b"").decode(errors="replace")
