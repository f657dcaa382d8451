"""Limits of signed tokens (JWS, RFC 7515) for the library."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from joserfc.jws import JWSRegistry


@lru_cache(maxsize=64)
def registry_of(algorithm: str, max_header: int, max_payload: int, max_signature: int) -> JWSRegistry:
    """Return a registry that permits one algorithm, unknown header fields, and parts of limited length in
    characters.
    """
    from joserfc.jws import JWSRegistry

    registry = JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    registry.max_header_length = max_header
    registry.max_payload_length = max_payload
    registry.max_signature_length = max_signature
    return registry
