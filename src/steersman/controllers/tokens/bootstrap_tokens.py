"""Secrets of bootstrap tokens, as controllers use them (k8s.io/cluster-bootstrap)."""

from __future__ import annotations

import re
from typing import Final

from steersman.api.core.v1 import Secret
from steersman.machinery.built_in.bootstrap_tokens import PREFIX, SIGNS, TOKEN_ID, TOKEN_SECRET, has_expired, value_text
from steersman.work.patterns import late_pattern

NAMESPACE: Final = "kube-system"
_NAME: Final = late_pattern(rf"{PREFIX}([a-z0-9]{{6}})", re.ASCII)


def signing_token(secret: Secret, now: float) -> tuple[str, str] | None:
    """Return the id and secret of a token that signs cluster information; None if the token is not valid for signing."""
    named = _NAME.fullmatch(secret.metadata.name)
    token_id, token = value_text(secret.data, TOKEN_ID), value_text(secret.data, TOKEN_SECRET)
    if named is None or not token or named[1] != token_id:
        return None
    if has_expired(secret.data, now) or value_text(secret.data, SIGNS) != "true":
        return None
    return token_id, token
