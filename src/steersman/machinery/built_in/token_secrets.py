"""Secrets that hold tokens of service accounts: how they are marked."""

from __future__ import annotations

from typing import Final

SECRET_TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
"""Annotations: whose token it is."""
LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
"""Labels, with days."""
ISSUER: Final = "kubernetes/serviceaccount"
"""As their issuer such tokens have this, whichever server signed them."""
