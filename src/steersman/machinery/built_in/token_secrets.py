"""Secrets of service account tokens: their type, annotations and labels."""

from __future__ import annotations

from typing import Final

SECRET_TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
"""Annotations with the token's service account."""
LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
"""Labels with a date."""
ISSUER: Final = "kubernetes/serviceaccount"
"""The issuer in these tokens, whichever server signed them."""
