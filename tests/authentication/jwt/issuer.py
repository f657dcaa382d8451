"""A token issuer for tests: keys, tokens and documents."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from joserfc import jws
from joserfc.jwk import ECKey, KeySet, RSAKey

from steersman.authentication.jwt.fetching import Document, FetchError
from steersman.authentication.jwt.provider import WELL_KNOWN

URL = "https://issuer.acme.com"
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
STRANGER = RSAKey.generate_key(2048, {"kid": "rsa"})


def token(
    key: Any = RSA,
    *,
    algorithm: str = "RS256",
    kid: str | None = None,
    header: dict[str, Any] | None = None,
    **claims: Any,
) -> str:
    """Return a signed token with defaults for `iss`, `aud`, `sub` and times; None removes a claim."""
    now = int(time.time())
    said = {"iss": URL, "aud": "steersman", "sub": "jane", "iat": now, "exp": now + 600, **claims}
    payload = msgspec.json.encode({name: value for name, value in said.items() if value is not None})
    head = {"alg": algorithm, "kid": key.kid if kid is None else kid, **(header or {})}
    return jws.serialize_compact(head, payload, key, registry=_registry(algorithm))


def _registry(algorithm: str) -> jws.JWSRegistry:
    return jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)


def keys(*given: Any) -> bytes:
    """Return a JSON Web Key Set of the public keys."""
    return msgspec.json.encode(KeySet(list(given)).as_dict(private=False))


class Issuer:
    """The documents of an issuer. `good_for` is in seconds; None in place of a document means no answer."""

    def __init__(self, *given: Any, good_for: float = 0.0) -> None:
        self.documents: dict[str, bytes | None] = {
            URL + WELL_KNOWN: msgspec.json.encode({"issuer": URL, "jwks_uri": f"{URL}/keys"}),
            f"{URL}/keys": keys(*given) if given else None,
        }
        self.good_for = good_for
        self.asked: list[tuple[str, str]] = []

    async def fetch(self, url: str, bearer: str) -> Document:
        self.asked.append((url, bearer))
        body = self.documents.get(url)
        if body is None:
            raise FetchError("connection refused")
        return Document(body, "application/json", self.good_for)

    def close(self) -> None:
        """Do nothing, see Fetcher."""
