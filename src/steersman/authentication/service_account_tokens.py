"""Service account tokens: JSON Web Tokens (RFC 7519) signed with the server's own key, and recognised again."""

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
    NotThere,
    common_audiences,
    judge,
    note_age,
    note_use,
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
"""Bytes; a longer text is no token. Kubernetes' are about 1,000 bytes long, and grow with their audiences."""
_MAX_HEADER: Final = 1024
_MAX_SIGNATURE: Final = 2731
"""Characters: the signature of an RSA key of 16,384 bits."""

_JSON: Final = msgspec.json.Encoder()

_FEW: Final = 4
"""Keys that are tried on the loop: a signer beside the server may have a thousand, each of which takes up to 3 ms."""

C = TypeVar("C")


def sign(keys: ServiceAccountKeys, claims: dict[str, Any]) -> str:
    """A token with these claims, signed as the key's kind asks for (ES256 or RS256). Raises KeyFileError."""
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
        """What verifies tokens now. It has the key of this id, if there is one anywhere; "" stands for any."""


class SignedTokens(ABC):
    """Knows the tokens of some `issuers` that were signed with this server's keys, and whose they are by their claims.

    The first token takes as long as the cryptography needs to be loaded, in a thread; every later one is judged at
    once, in about 0.2 ms.
    """

    def __init__(
        self, keys: Callable[[], ServiceAccountKeys] | Verifiers, issuers: Iterable[str], look_up: LookUp | None = None
    ) -> None:
        """`keys` is called at the first token, Verifiers are asked at each."""
        self._look_up = look_up
        self._keys = keys
        self._issuers = frozenset(issuers)
        self._verifier: TokenVerifier | None = None
        self._room = asyncio.Semaphore(1)

    @abstractmethod
    def judge(self, claims: bytes, token: str, audiences: tuple[str, ...]) -> TokenIdentity:
        """Whose a verified token with these claims (JSON) is. Raises AuthenticationError, NotThere."""

    def _judge(self, claims: bytes, token: str, audiences: tuple[str, ...]) -> TokenIdentity | Awaitable[TokenIdentity]:
        """The same; what the token is about may have come to be on another server a moment ago."""
        try:
            return self.judge(claims, token, audiences)
        except NotThere as missing:
            if self._look_up is None:
                raise
            return self._judge_again(self._look_up, missing, claims, token, audiences)

    async def _judge_again(
        self, look_up: LookUp, missing: NotThere, claims: bytes, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity:
        """Looks up what is missing, one after the other, as long as that makes a difference."""
        while True:
            looked_up = missing.object
            try:
                await look_up(*looked_up)
            except StatusError as error:
                raise AuthenticationError(error.message) from error
            try:
                return self.judge(claims, token, audiences)
            except NotThere as next_one:
                if next_one.object == looked_up:
                    raise
                missing = next_one

    def authenticate_token(
        self, token: str, audiences: tuple[str, ...]
    ) -> TokenIdentity | Awaitable[TokenIdentity | None] | None:
        """See TokenAuthenticator. Without `audiences` the API's own are asked for."""
        header = _header_of(token, self._issuers)
        if header is None:
            return None
        verifier = self._verifier
        if isinstance(self._keys, Verifiers):
            found = self._keys.verifier(header.kid)
            if not isinstance(found, TokenVerifier):
                return self._judge_later(found, token, header.kid, audiences)
            verifier = found
        elif verifier is None:
            return self._judge_later(self._prepare(self._keys), token, header.kid, audiences)
        if verifier.candidates(header.kid) > _FEW:
            return self._judge_beside(verifier, token, header.kid, audiences)
        return self._judge(verifier.verify(token, header.kid), token, audiences)

    async def _prepare(self, keys: Callable[[], ServiceAccountKeys]) -> TokenVerifier:
        self._verifier = verifier = await offload_if(True, TokenVerifier, keys())
        return verifier

    async def _judge_later(
        self, preparing: Awaitable[TokenVerifier], token: str, key_id: str, audiences: tuple[str, ...]
    ) -> TokenIdentity:
        return await self._judge_beside(await preparing, token, key_id, audiences)

    async def _judge_beside(
        self, verifier: TokenVerifier, token: str, key_id: str, audiences: tuple[str, ...]
    ) -> TokenIdentity:
        """Many keys are tried beside the loop, for one token at a time."""
        if verifier.candidates(key_id) <= _FEW:
            claims = verifier.verify(token, key_id)
        else:
            async with self._room:
                claims = await offload_if(True, verifier.verify, token, key_id)
        found = self._judge(claims, token, audiences)
        return found if isinstance(found, TokenIdentity) else await found


class ServiceAccountTokens(SignedTokens):
    """Knows service accounts by the tokens that are asked for. Their claims are checked against the present state of
    `objects`."""

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
        """`clock` gives seconds since the epoch."""
        super().__init__(keys, issuers, objects.look_up)
        self._api_audiences = api_audiences
        self._objects = objects
        self._metrics = metrics
        self._clock = clock

    def judge(self, claims: bytes, token: str, audiences: tuple[str, ...]) -> TokenIdentity:
        found = read_claims(claims, Claims)
        remarks = note_use(found, self._metrics)
        common = common_audiences(found, audiences or self._api_audiences, self._api_audiences)
        now = self._clock()
        user = authenticated(judge(found, self._objects, now))
        return TokenIdentity(user, common, note_age(found, now, self._metrics, remarks))


_Key: TypeAlias = "tuple[RSAKey | ECKey, JWSRegistry]"


class TokenVerifier:
    """Reads the claims of tokens that one of the keys has signed.

    The algorithm is that of the key; what a token's header says must be the same. So no token can choose another
    (`none`, or HMAC with a public key as the secret), nor bring a key of its own.
    """

    def __init__(self, keys: ServiceAccountKeys | Sequence[VerificationKey]) -> None:
        """Parses the keys and loads the cryptography; takes up to 0.1 s. Raises KeyFileError."""
        from joserfc import jws
        from joserfc.errors import JoseError

        self._deserialize = jws.deserialize_compact
        self._error = JoseError
        self._keys: dict[str, list[_Key]] = {}
        for each in keys.verification_keys if isinstance(keys, ServiceAccountKeys) else keys:
            key = _web_key(each.key, each.algorithm), _registry(each.algorithm)
            self._keys.setdefault(each.key_id, []).append(key)
        self._all = [key for keys in self._keys.values() for key in keys]

    def has(self, key_id: str) -> bool:
        """Whether there is a key of this id; "" stands for any."""
        return not key_id or key_id in self._keys

    def candidates(self, key_id: str) -> int:
        """How many keys may have signed a token that names this one; "" stands for any."""
        return len(self._of(key_id))

    def _of(self, key_id: str) -> Sequence[_Key]:
        return self._keys.get(key_id, ()) if key_id else self._all

    def verify(self, token: str, key_id: str) -> bytes:
        """The claims, in JSON, of a `token` signed with the key `key_id`, or with any if that is empty.

        Raises AuthenticationError if none of the keys has signed it.
        """
        keys = self._of(key_id)
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
    """The header of a token that says it is of one of the `issuers`, None if it is of another or no token at all.

    Nobody has looked at the signature yet: what is read here must only serve to find the key.
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
    """The bytes of base64url without padding (RFC 7515, section 2), in its one canonical form. Raises ValueError."""
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if base64.urlsafe_b64encode(data).rstrip(b"=") != text.encode():
        raise ValueError("not canonical base64url")
    return data


def read_claims(payload: bytes, claims: type[C]) -> C:
    """The claims of a verified token. Raises AuthenticationError."""
    try:
        return msgspec.json.decode(payload, type=claims)
    except (ValueError, RecursionError):
        raise AuthenticationError("service account token claims could not be read") from None


def _web_key(key: Any, algorithm: str) -> RSAKey | ECKey:
    """The library's form of a key of the cryptography package, private or public."""
    from joserfc.jwk import ECKey, RSAKey

    return ECKey(key, key) if algorithm.startswith("ES") else RSAKey(key, key)


@lru_cache(maxsize=4)
def _signing_key(keys: ServiceAccountKeys) -> RSAKey | ECKey:
    return _web_key(keys.signing_key, keys.signing.algorithm)


def _registry(algorithm: str) -> JWSRegistry:
    return registry_of(algorithm, _MAX_HEADER, MAX_TOKEN, _MAX_SIGNATURE)
