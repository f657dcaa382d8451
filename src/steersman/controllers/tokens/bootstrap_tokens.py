"""Secrets with which nodes join a cluster: what controllers make of them (k8s.io/cluster-bootstrap)."""

from __future__ import annotations

import re
from typing import Final

from steersman.api.core.v1 import Secret
from steersman.machinery.built_in.bootstrap_tokens import PREFIX, SIGNS, TOKEN_ID, TOKEN_SECRET, has_expired, value_text

NAMESPACE: Final = "kube-system"
_NAME: Final = re.compile(rf"{PREFIX}([a-z0-9]{{6}})", re.ASCII)


def signing_token(secret: Secret, now: float) -> tuple[str, str] | None:
    """Id and secret of a token by which the cluster's information is signed; None for one that is not for that."""
    named = _NAME.fullmatch(secret.metadata.name)
    token_id, token = value_text(secret.data, TOKEN_ID), value_text(secret.data, TOKEN_SECRET)
    if named is None or not token or named[1] != token_id:
        return None
    if has_expired(secret.data, now) or value_text(secret.data, SIGNS) != "true":
        return None
    return token_id, token
