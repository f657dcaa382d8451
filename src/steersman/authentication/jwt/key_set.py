"""The public keys of an issuer (RFC 7517), and verification of token signatures with them (RFC 7515)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steersman.authentication.jwt.id_token import MAX_TOKEN, CompactToken
from steersman.authentication.signatures import registry_of
from steersman.machinery.codec.json_syntax import syntax_error

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, RSAKey

MOST_KEYS: Final = 256
_MAX_HEADER: Final = 16 * 1024
_MAX_SIGNATURE: Final = 4 * 1024
_RSA: Final = ("n", "e")
_EC: Final = ("crv", "x", "y")
_LARGEST_EXPONENT: Final = (1 << 31) - 1
"""Largest exponent that Go accepts (crypto/rsa); one as long as the key would take 50 times as long."""


class KeySetError(ValueError):
    """A document that is no key set, or has an unusable key."""


class _Key(msgspec.Struct, frozen=True):
    """The used members of a JSON Web Key."""

    kty: str = ""
    kid: str = ""
    crv: str = ""
    x: str = ""
    y: str = ""
    n: str = ""
    e: str = ""
    x5c: tuple[str, ...] = ()
    x5t: str = ""
    x5t_sha256: str = msgspec.field(name="x5t#S256", default="")


class _KeySet(msgspec.Struct, frozen=True):
    keys: tuple[_Key, ...] = ()


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key with its id; `key` is None for a key that no supported algorithm uses."""

    key_id: str
    key: RSAKey | ECKey | None


def read_keys(data: bytes) -> tuple[PublicKey, ...]:
    """Return the keys in a JSON Web Key Set; takes 0.1 s if cryptography is not imported yet. Raises KeySetError.

    As in upstream's library, a key of an unknown kind makes the whole set unusable, and so does a key with the
    certificate of another key.
    """
    try:
        found = msgspec.json.decode(data, type=_KeySet)
    except (ValueError, RecursionError):
        raise KeySetError(syntax_error(data) or "these are no JSON Web Keys") from None
    if len(found.keys) > MOST_KEYS:
        raise KeySetError(f"more than {MOST_KEYS} keys")
    return tuple(PublicKey(each.kid, _checked(each)) for each in found.keys)


def _checked(key: _Key) -> RSAKey | ECKey | None:
    """Return the key after checking its certificate, if it has one. Raises KeySetError."""
    if not (key.x5c or key.x5t or key.x5t_sha256):
        return _public(key)
    from steersman.authentication.jwt.key_certificates import KeyCertificateError, check_certificates

    if key.x5c and key.kty == "oct":
        raise KeySetError("go-jose/go-jose: invalid JWK, found 'oct' (symmetric) key with cert chain")
    found = _public(key)
    try:
        digests = {"x5t": key.x5t, "x5t#S256": key.x5t_sha256}
        check_certificates(key.x5c, digests, None if found is None else found.public_key)
    except KeyCertificateError as error:
        raise KeySetError(str(error)) from None
    return found


def _public(key: _Key) -> RSAKey | ECKey | None:
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, RSAKey

    try:
        if key.kty == "RSA":
            found = RSAKey.import_key(_members(key, _RSA))
            return found if found.public_key.public_numbers().e <= _LARGEST_EXPONENT else None
        if key.kty == "EC":
            return ECKey.import_key(_members(key, _EC))
    except (JoseError, ValueError, TypeError, KeyError):
        raise KeySetError(f"go-jose/go-jose: invalid {key.kty} key") from None
    if key.kty == "oct" or (key.kty == "OKP" and key.crv == "Ed25519"):
        return None
    if key.kty == "OKP":
        raise KeySetError(f"go-jose/go-jose: unknown curve {key.crv}'")
    raise KeySetError(f"go-jose/go-jose: unknown json web key type '{key.kty}'")


def _members(key: _Key, names: tuple[str, ...]) -> Any:
    found = {name: getattr(key, name) for name in names}
    if not all(found.values()):
        raise KeySetError(f"go-jose/go-jose: invalid {key.kty} key, missing values")
    return {"kty": key.kty, **found}


def candidates(token: CompactToken, keys: tuple[PublicKey, ...]) -> int:
    """Return the number of keys that may have signed a token."""
    return sum(1 for each in keys if _may_be(token, each))


def _may_be(token: CompactToken, key: PublicKey) -> bool:
    return key.key is not None and token.key_id in ("", key.key_id)


def verified(token: CompactToken, keys: tuple[PublicKey, ...]) -> bytes | None:
    """Return the payload of a token signed with one of the keys, or None. A key id in the token selects the key."""
    from joserfc import jws
    from joserfc.errors import JoseError

    registry = registry_of(token.algorithm, _MAX_HEADER, MAX_TOKEN, _MAX_SIGNATURE)
    for each in keys:
        if each.key is None or not _may_be(token, each):
            continue
        try:
            return jws.deserialize_compact(token.text, each.key, registry=registry).payload
        except (JoseError, ValueError, TypeError):
            continue
    return None
