"""Service account tokens signed by another process, over its Unix socket (k8s.io/externaljwt `apis/v1`).

Follows pkg/serviceaccount/externaljwt/plugin. The signer has the private keys. The public keys are fetched at intervals
that the signer sets, and when a token names an unknown key.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from steersman.authentication.service_account_keys import KeyFileError, VerificationKey, algorithm_of
from steersman.authentication.service_account_tokens import TokenVerifier, Verifiers
from steersman.machinery.errors.field import quote
from steersman.machinery.metrics import Counter, Gauge, Histogram, Registry
from steersman.machinery.values import times
from steersman.net import protobuf_fields as proto
from steersman.net.client.grpc import CallError
from steersman.net.client.unix_rpc import UnixChannel
from steersman.work.offloading import offload_if
from steersman.work.periodic import Periodic
from steersman.work.single_flight import SingleFlight

logger = logging.getLogger(__name__)

FETCH_TIMEOUT: Final = 60.0
METADATA_TIMEOUT: Final = 10.0
_RETRY_FETCH: Final = 10.0
"""Seconds between attempts after a failed fetch of keys."""
_MOST_KEYS: Final = 1000
_MOST_KEY_ID: Final = 1024
_ALGORITHMS: Final = frozenset(("RS256", "ES256", "ES384", "ES512"))
_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

T = TypeVar("T")


class SignerError(Exception):
    """A failed call of the signer or an invalid answer; `code` is the label in metrics."""

    def __init__(self, why: str, code: str = "unknown-non-grpc") -> None:
        super().__init__(why)
        self.code = code


class SignerMetrics:
    """Metrics of the signer (pkg/serviceaccount/externaljwt/metrics)."""

    def __init__(self, registry: Registry) -> None:
        name = "apiserver_externaljwt"
        self.fetched: Final = Gauge(f"{name}_fetch_keys_success_timestamp", "Time of the last fetch of keys, Unix time")
        self.data: Final = Gauge(f"{name}_fetch_keys_data_timestamp", "Timestamp of the signer's keys, Unix time")
        self.fetches: Final = Counter(f"{name}_fetch_keys_request_total", "Fetches of keys", ("code",))
        self.signed: Final = Counter(f"{name}_sign_request_total", "Requests to sign a token", ("code",))
        self.durations: Final = Histogram(
            f"{name}_request_duration_seconds", "Duration of calls of the signer", _BUCKETS, ("method", "code")
        )
        registry.add(self.fetched, self.data, self.fetches, self.signed, self.durations)


@dataclass(frozen=True, slots=True)
class _PublicKeys:
    keys: tuple[VerificationKey, ...]
    verify_only: frozenset[str]
    """Ids of keys that are not published: no token is signed with them any more."""
    moment: float
    """Timestamp of the keys, Unix time."""
    refresh_at: float
    """Time of the next fetch on `times.monotonic`."""


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    alg: str = ""
    kid: str = ""
    typ: str = ""


class ExternalSigner(Verifiers):
    """Client of an external signer. The constructor needs a running event loop; call `start` first.

    `timeout` is the time in seconds allowed for signing.
    """

    def __init__(self, socket: str, metrics: SignerMetrics, *, timeout: float) -> None:
        self._metrics = metrics
        self._timeout = timeout
        self._channel = UnixChannel(
            socket, lambda method, code, seconds: metrics.durations.observe(seconds, (method, code))
        )
        self._public = _PublicKeys((), frozenset(), 0.0, 0.0)
        self._verifier: TokenVerifier | None = None
        self._fetching: SingleFlight[str, None] = SingleFlight()
        self._refresh = Periodic("fetching the signer's keys", self._renew, self._until_refresh, is_upkeep=False)
        self._is_stale = False
        """True if the last periodic fetch failed."""
        self.max_token_expiration = 0
        """Longest lifetime of a token in seconds."""

    async def start(self) -> None:
        """Fetch the keys, and start fetching them periodically. Raises SignerError."""
        try:
            await self._fetch_once()
        except SignerError as error:
            raise SignerError(
                f"while initially filling key cache: while performing initial cache fill: {error}", error.code
            ) from None
        fields = await self._call("Metadata", b"", METADATA_TIMEOUT)
        self.max_token_expiration = _read(lambda: proto.number_of(fields, 1))
        self._refresh.start()

    async def stop(self) -> None:
        """Stop fetching, and close the connection."""
        await self._refresh.stop()
        await self._fetching.stop()
        await self._channel.close()

    # Verifying

    def verifier(self, key_id: str) -> TokenVerifier | Awaitable[TokenVerifier]:
        known = self._verifier
        assert known is not None
        return known if known.has_key(key_id) else self._newest()

    async def _newest(self) -> TokenVerifier:
        try:
            await self._fetch_once()
        except SignerError as error:
            logger.error("fetching the external signer's keys failed: %s", error)
        assert self._verifier is not None
        return self._verifier

    @property
    def published(self) -> tuple[VerificationKey, ...]:
        """The keys published for others to verify tokens."""
        public = self._public
        return tuple(each for each in public.keys if each.key_id not in public.verify_only)

    def max_age(self) -> int:
        """Return the seconds until the keys expire."""
        return max(0, int(self._public.refresh_at - times.monotonic()))

    def _until_refresh(self) -> float:
        return _RETRY_FETCH if self._is_stale else self._public.refresh_at - times.monotonic()

    async def _renew(self) -> None:
        self._is_stale = True
        try:
            await self._fetch_once()
            self._is_stale = False
        except SignerError as error:
            logger.error("fetching the external signer's keys failed, keeping the known ones: %s", error)

    async def _fetch_once(self) -> None:
        """Fetch the keys, in single flight. Raises SignerError."""
        await self._fetching.do("keys", self._fetch)

    async def _fetch(self) -> None:
        code = "OK"
        try:
            public, verifier = await self._fetch_keys()
        except SignerError as error:
            code = error.code
            raise SignerError(f"while fetching token verification keys: {error}", code) from None
        finally:
            self._metrics.fetches.inc((code,))
        self._public, self._verifier = public, verifier
        self._metrics.fetched.set(times.unix_now())
        self._metrics.data.set(public.moment)

    async def _fetch_keys(self) -> tuple[_PublicKeys, TokenVerifier]:
        try:
            fields = await self._call("FetchKeys", b"", FETCH_TIMEOUT)
        except SignerError as error:
            raise SignerError(f"while getting externally supported jwt signing keys: {error}", error.code) from None
        return await offload_if(True, _usable, fields)

    # Signing

    async def sign(self, claims: bytes) -> str:
        """Return a token with these claims (JSON). Raises SignerError."""
        code = "OK"
        try:
            return await self._signed(base64.urlsafe_b64encode(claims).rstrip(b"=").decode())
        except SignerError as error:
            code = error.code
            raise
        finally:
            self._metrics.signed.inc((code,))

    async def _signed(self, payload: str) -> str:
        try:
            fields = await self._call("Sign", proto.encode([(1, payload)]), self._timeout)
        except SignerError as error:
            raise SignerError(f"while signing jwt: {error}", error.code) from None
        header, signature = _read(lambda: (proto.text_of(fields, 1), proto.text_of(fields, 2)))
        try:
            found = _read_header(header)
            verifier = self.verifier(found.kid)
            if not isinstance(verifier, TokenVerifier):
                await verifier
            if found.kid in self._public.verify_only:
                raise SignerError(f"key used for signing JWT (kid: {found.kid}) is excluded from OIDC discovery docs")
        except SignerError as error:
            raise SignerError(f"while validating header: {error}") from None
        if not signature:
            raise SignerError("empty signature returned")
        return f"{header}.{payload}.{signature}"

    async def _call(self, method: str, message: bytes, timeout: float) -> dict[int, list[proto.Value]]:
        try:
            answer = await self._channel.call(f"/v1.ExternalJWTSigner/{method}", message, timeout=timeout)
        except CallError as error:
            raise SignerError(str(error), error.code.text) from None
        return _read(lambda: proto.decode(answer))


def _read(read: Callable[[], T]) -> T:
    """Return the result of `read`. Raises SignerError for a malformed answer."""
    try:
        return read()
    except proto.FieldsError as error:
        why = f"grpc: failed to unmarshal the received message: {error}"
        raise SignerError(f"rpc error: code = Internal desc = {why}", "Internal") from None


def _read_header(text: str) -> _Header:
    """Return the header of a token. Raises SignerError for an invalid header."""
    try:
        if "=" in text:
            raise ValueError("padding")
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise SignerError("while unwrapping header: illegal base64 data") from None
    try:
        header = msgspec.json.decode(data, type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise SignerError("while parsing header JSON: not an object of alg, kid and typ") from None
    if header.typ != "JWT":
        raise SignerError("bad type")
    if not header.kid:
        raise SignerError("key id missing")
    if len(header.kid.encode()) > _MOST_KEY_ID:
        raise SignerError("key id longer than 1 kb")
    if header.alg not in _ALGORITHMS:
        raise SignerError(f"bad signing algorithm {quote(header.alg)}")
    return header


def _usable(fields: dict[int, list[proto.Value]]) -> tuple[_PublicKeys, TokenVerifier]:
    """Return the keys of an answer and their verifier; offload it, as many keys take long. Raises SignerError."""
    public = _read(lambda: _public_keys(fields))
    return public, TokenVerifier(public.keys)


def _public_keys(fields: dict[int, list[proto.Value]]) -> _PublicKeys:
    """Return the keys of an answer. Raises SignerError and FieldsError."""
    hint = proto.number_of(fields, 3)
    if hint <= 0:
        raise SignerError(f"found invalid refresh hint ({hint}s)")
    given = fields.get(1, [])
    if not given:
        raise SignerError("found no keys")
    if len(given) > _MOST_KEYS:
        raise SignerError(f"found more than {_MOST_KEYS} keys")
    if 2 not in fields:
        raise SignerError("invalid data timestamp: proto: invalid nil Timestamp")
    stamp = proto.decode(proto.bytes_of(fields, 2))
    keys, verify_only = [], set()
    for each in given:
        key = proto.decode(each if isinstance(each, bytes) else b"")
        key_id, der = proto.text_of(key, 1), proto.bytes_of(key, 2)
        if not key_id or len(key_id.encode()) > _MOST_KEY_ID:
            raise SignerError(f"found invalid public key id {quote(key_id)}")
        keys.append(verification_key(key_id, der))
        if proto.number_of(key, 3):
            verify_only.add(key_id)
    moment = proto.number_of(stamp, 1) + proto.number_of(stamp, 2) / 1e9
    return _PublicKeys(tuple(keys), frozenset(verify_only), moment, times.monotonic() + hint)


def verification_key(key_id: str, der: bytes) -> VerificationKey:
    """Return a public key for verification. Raises SignerError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    if not der:
        raise SignerError("found empty public key")
    try:
        key = load_der_public_key(der)
        if isinstance(key, RSAPublicKey | EllipticCurvePublicKey):
            return VerificationKey(key, key_id, algorithm_of(key))
    except (ValueError, UnsupportedAlgorithm, KeyFileError):
        pass
    raise SignerError("while parsing external public keys: it is no RSA or ECDSA key that can sign tokens")
