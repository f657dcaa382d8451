"""Signing service account tokens: JSON Web Tokens (RFC 7519) with the server's own key."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from steersman.authentication.service_account_keys import ServiceAccountKeys


def sign(keys: ServiceAccountKeys, claims: dict[str, Any]) -> str:
    """A token with these claims, signed as the key's kind asks for (ES256 or RS256)."""
    from joserfc import jwt
    from joserfc.jwk import ECKey, RSAKey

    signing = keys.signing
    kind = ECKey if signing.algorithm.startswith("ES") else RSAKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem = keys.signing_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    header = {"alg": signing.algorithm, "kid": signing.key_id}
    return jwt.encode(header, claims, kind.import_key(pem), algorithms=[signing.algorithm])


def unverified_claims(token: str) -> dict[str, Any] | None:
    """The claims of a token whose signature nobody has looked at; None if it is no token of this form."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        data = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims = msgspec.json.decode(data)
    except ValueError:
        return None
    return claims if isinstance(claims, dict) else None
