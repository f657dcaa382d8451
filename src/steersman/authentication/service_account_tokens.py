"""Service account tokens: JSON Web Tokens (RFC 7519), signed with the server's own key and authenticated."""

from __future__ import annotations

import asyncio
import base64
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from steersman.authentication.interface import AuthenticationError, TokenIdentity
from steersman.authentication.service_account_claims import (
    BoundObjects,
    Claims,
    LookUp,
    MissingObject,
    common_audiences,
    note_age,
    note_use,
    validate_claims,
)
from steersman.authentication.service_account_keys import ServiceAccountKeys, VerificationKey
from steersman.authentication.service_account_metrics import ServiceAccountMetrics
from steersman.authentication.signatures import registry_of
from steersman.authentication.user import authenticated
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.work.offloading import offload_if

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, RSAKey
    from joserfc.jws import JWSRegistry

MAX_TOKEN: Final = 128_000
"""Limit of a token in bytes. Kubernetes' tokens have about 1,000 bytes, and grow with their audiences."""
_MAX_HEADER: Final = 1024
_MAX_SIGNATURE: Final = 2731
"""Limit of characters of a signature: that of an RSA key of 16,384 bits."""

_JSON: Final = msgspec.json.Encoder()

_FEW: Final = 4
"""Number of keys up to which a token is verified on the event loop: an external signer may have a thousand keys, each
of which takes up to 3 ms.
"""

C = TypeVar("C")


def sign(keys: ServiceAccountKeys, claims: dict[str, Any]) -> str:
    """Return a token with these claims, signed with the key's algorithm (ES256 or RS256). Raises KeyFileError."""
    from joserfc import jws

    signing = keys.signing
    header = {"alg": signing.algorithm, "kid": signing.key_id}
    return jws.serialize_compact(
        header, _JSON.encode(claims), _signing_key(keys), registry=_registry(signing.algorithm)
    )


class Verifiers(ABC):
    """Keys that change while the server runs."""

    @abstractmethod
    def verifier(self, key_id: str) -> TokenVerifier | Awaitable[TokenVerifier]:
        """Return the present verifier. It has the key of this id, if that exists; "" means any key."""


class SignedTokens(ABC):
    """Authenticator of tokens by certain `issuers`, signed with this server's keys.

    The first token waits for a thread to import the cryptography; every later one is checked at once, in about 0.2 ms.
    """

    def __init__(
        self, keys: Callable[[], ServiceAccountKeys] | Verifiers, issuers: Iterable[str], look_up: LookUp | None = None
    ) -> None:
        """`keys` is a function that is called at the first token, or Verifiers, which are asked at each token."""
        self._look_up = look_up
        self._keys = keys
        self._issuers = frozenset(issuers)
        self._verifier: TokenVerifier | None = None
        self._room = asyncio.Semaphore(1)

    @abstractmethod
    def validate(self, claims: bytes, token: str, audiences: tuple[str, ...]) -> TokenIdentity:
        """Return the identity of a verified token with these claims (JSON). Raises AuthenticationError and MissingObject."""

    def _validate(
        self, claims: bytes, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity]:
        """Return the identity of a verified token; if an object is missing, look for it in storage and try again."""
        try:
            return self.validate(claims, token, audiences)
        except MissingObject as missing:
            if self._look_up is None:
                raise
            return self._validate_again(self._look_up, missing, claims, token, audiences)

    async def _validate_again(
        self, look_up: LookUp, missing: MissingObject, claims: bytes, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity:
        """Look up one missing object after the other, as long as that changes the result."""
        while True:
            looked_up = missing.object
            try:
                await look_up(*looked_up)
            except StatusError as error:
                raise AuthenticationError(error.message) from error
            try:
                return self.validate(claims, token, audiences)
            except MissingObject as next_one:
                if next_one.object == looked_up:
                    raise
                missing = next_one

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """Authenticate a token. See TokenAuthenticator. Without `audiences` the API's own are required."""
        header = _header_of(token, self._issuers)
        if header is None:
            return None
        verifier = self._verifier
        if isinstance(self._keys, Verifiers):
            found = self._keys.verifier(header.kid)
            if not isinstance(found, TokenVerifier):
                return self._validate_later(found, token, header.kid, audiences)
            verifier = found
        elif verifier is None:
            return self._validate_later(self._prepare(self._keys), token, header.kid, audiences)
        if verifier.candidates(header.kid) > _FEW:
            return self._validate_offloaded(verifier, token, header.kid, audiences)
        return self._validate(verifier.verify(token, header.kid), token, audiences)

    async def _prepare(self, keys: Callable[[], ServiceAccountKeys]) -> TokenVerifier:
        self._verifier = verifier = await offload_if(True, TokenVerifier, keys())
        return verifier

    async def _validate_later(
        self, preparing: Awaitable[TokenVerifier], token: str, key_id: str, audiences: tuple[str, ...]
    ) -> TokenIdentity:
        return await self._validate_offloaded(await preparing, token, key_id, audiences)

    async def _validate_offloaded(
        self, verifier: TokenVerifier, token: str, key_id: str, audiences: tuple[str, ...]
    ) -> TokenIdentity:
        """Verify a token; many keys are tried in a worker thread, for one token at a time."""
        if verifier.candidates(key_id) <= _FEW:
            claims = verifier.verify(token, key_id)
        else:
            async with self._room:
                claims = await offload_if(True, verifier.verify, token, key_id)
        found = self._validate(claims, token, audiences)
        return found if isinstance(found, TokenIdentity) else await found


class ServiceAccountTokens(SignedTokens):
    """Authenticates service accounts by tokens of TokenRequests, checking their claims against present `objects`."""

    def __init__(
        self,
        keys: Callable[[], ServiceAccountKeys] | Verifiers,
        issuers: Iterable[str],
        api_audiences: tuple[str, ...],
        objects: BoundObjects,
        metrics: ServiceAccountMetrics,
        *,
        clock: Callable[[], float] = times.unix_now,
    ) -> None:
        """`clock` returns seconds since the epoch."""
        super().__init__(keys, issuers, objects.look_up)
        self._api_audiences = api_audiences
        self._objects = objects
        self._metrics = metrics
        self._clock = clock

    def validate(self, claims: bytes, token: str, audiences: tuple[str, ...]) -> TokenIdentity:
        found = read_claims(claims, Claims)
        remarks = note_use(found, self._metrics)
        common = common_audiences(found, audiences or self._api_audiences, self._api_audiences)
        now = self._clock()
        user = authenticated(validate_claims(found, self._objects, now))
        return TokenIdentity(user, common, note_age(found, now, self._metrics, remarks))


_Key: TypeAlias = "tuple[RSAKey | ECKey, JWSRegistry]"


class TokenVerifier:
    """Verifier of token signatures.

    The key determines the algorithm; the token's header must match. So a token can neither choose another algorithm
    (`none`, or HMAC with a public key as the secret) nor bring its own key.
    """

    def __init__(self, keys: ServiceAccountKeys | Sequence[VerificationKey]) -> None:
        """Parse the keys and import the cryptography; takes up to 0.1 s. Raises KeyFileError."""
        from joserfc import jws
        from joserfc.errors import JoseError

        self._deserialize = jws.deserialize_compact
        self._error = JoseError
        self._keys: dict[str, list[_Key]] = {}
        for each in keys.verification_keys if isinstance(keys, ServiceAccountKeys) else keys:
            key = _web_key(each.key, each.algorithm), _registry(each.algorithm)
            self._keys.setdefault(each.key_id, []).append(key)
        self._all = [key for keys in self._keys.values() for key in keys]

    def has_key(self, key_id: str) -> bool:
        """Return True if there is a key of this id; "" means any key."""
        return not key_id or key_id in self._keys

    def candidates(self, key_id: str) -> int:
        """Return the number of keys that may have signed a token with this key id; "" means any key."""
        return len(self._keys_for(key_id))

    def _keys_for(self, key_id: str) -> Sequence[_Key]:
        return self._keys.get(key_id, ()) if key_id else self._all

    def verify(self, token: str, key_id: str) -> bytes:
        """Return the claims, in JSON, of a `token` signed with the key `key_id`, or with any key if that is empty.

        Raises AuthenticationError if none of the keys has signed it.
        """
        keys = self._keys_for(key_id)
        if not keys:
            raise AuthenticationError("invalid signature, no keys found")
        for key, registry in keys:
            try:
                payload = self._deserialize(token, key, registry=registry).payload
            except (self._error, ValueError):
                continue
            return payload
        raise AuthenticationError("go-jose/go-jose: error in cryptographic primitive")


class _Header(msgspec.Struct, frozen=True):
    """The JOSE header (RFC 7515, section 4)."""

    alg: str
    kid: str = ""


class _Issuer(msgspec.Struct, frozen=True):
    iss: str = ""


_read_header: Final = msgspec.json.Decoder(_Header).decode
_read_issuer: Final = msgspec.json.Decoder(_Issuer).decode


def _header_of(token: str, issuers: frozenset[str]) -> _Header | None:
    """Return the header of an unverified token that claims one of the `issuers`; None for another issuer or no token.

    The signature is not checked yet: the header may only be used to find the key.
    """
    if len(token) > MAX_TOKEN:
        return None
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        if _read_issuer(_decoded(parts[1])).iss not in issuers:
            return None
        _decoded(parts[2])
        return _read_header(_decoded(parts[0]))
    except (ValueError, RecursionError):
        return None


def _decoded(text: str) -> bytes:
    """Decode base64url without padding (RFC 7515, section 2) in its canonical form. Raises ValueError."""
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if base64.urlsafe_b64encode(data).rstrip(b"=") != text.encode():
        raise ValueError("not canonical base64url")
    return data


def read_claims(payload: bytes, claims: type[C]) -> C:
    """Return the claims of a verified token. Raises AuthenticationError."""
    try:
        return msgspec.json.decode(payload, type=claims)
    except (ValueError, RecursionError):
        raise AuthenticationError("service account token claims could not be read") from None


def _web_key(key: Any, algorithm: str) -> RSAKey | ECKey:
    """Return a key of the cryptography package, private or public, as the library's type."""
    from joserfc.jwk import ECKey, RSAKey

    return ECKey(key, key) if algorithm.startswith("ES") else RSAKey(key, key)


@lru_cache(maxsize=4)
def _signing_key(keys: ServiceAccountKeys) -> RSAKey | ECKey:
    return _web_key(keys.signing_key, keys.signing.algorithm)


def _registry(algorithm: str) -> JWSRegistry:
    return registry_of(algorithm, _MAX_HEADER, MAX_TOKEN, _MAX_SIGNATURE)
