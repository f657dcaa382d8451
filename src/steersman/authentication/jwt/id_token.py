"""ID tokens of OpenID providers: parsing and checks (OpenID Connect Core 1.0, 3.1.3.7).

Follows kube-apiserver's library (go-oidc `IDTokenVerifier`) with its texts, which TokenReviews show.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from steersman.authentication.interface import AuthenticationError
from steersman.machinery.codec.go_json import unmarshal
from steersman.machinery.codec.go_types import STRING, GoMember, GoType
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.field import quote
from steersman.work.patterns import late_pattern

MAX_TOKEN: Final = 64 * 1024
"""Limit of characters of a token."""
ALGORITHMS: Final = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
"""Algorithms that may be configured; none uses a secret shared with the issuer."""
_GOOGLE: Final = "https://accounts.google.com"
_GOOGLE_TOO: Final = "accounts.google.com"
_ILLEGAL: Final = late_pattern("[^A-Za-z0-9_-]")
_LEEWAY: Final = 60.0
_LONGEST_AGE: Final = 1 << 62


class CompactToken(NamedTuple):
    """A token in compact form, with the fields of its header that select the key."""

    text: str
    algorithm: str
    key_id: str


class _Header(msgspec.Struct, frozen=True):
    """The JOSE header (RFC 7515, section 4)."""

    alg: str = ""
    kid: str = ""
    crit: msgspec.Raw = msgspec.Raw()


class _Source(msgspec.Struct, frozen=True):
    """The location of a distributed claim."""

    endpoint: str = ""
    access_token: str = ""


class _Issued(msgspec.Struct, frozen=True):
    iss: str = ""


class IdToken(msgspec.Struct, frozen=True):
    """The claims of every ID token."""

    iss: str = ""
    sub: str = ""
    aud: str | tuple[str, ...] | None = None
    exp: int | float = 0
    iat: int | float = 0
    nbf: int | float | None = None
    nonce: str = ""
    at_hash: str = ""
    claim_names: dict[str, str] | None = msgspec.field(name="_claim_names", default=None)
    claim_sources: dict[str, _Source] | None = msgspec.field(name="_claim_sources", default=None)

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences of the token."""
        return (self.aud,) if isinstance(self.aud, str) else self.aud or ()


@dataclass(frozen=True, slots=True)
class Expectations:
    """Requirements for a token: its issuer, one of these audiences, and one of these signature algorithms."""

    issuer: str
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...]


_read_header: Final = msgspec.json.Decoder(_Header).decode
_read_issuer: Final = msgspec.json.Decoder(_Issued).decode
_read_token: Final = msgspec.json.Decoder(IdToken).decode
_NUMBER: Final = GoType("float64", "json.Number")
_SOURCE: Final = GoType(
    "struct", "oidc.claimSource", members={name: GoMember(STRING, ()) for name in ("endpoint", "access_token")}
)
_MEMBERS: Final = {
    "iss": STRING,
    "sub": STRING,
    "exp": _NUMBER,
    "iat": _NUMBER,
    "nbf": _NUMBER,
    "nonce": STRING,
    "at_hash": STRING,
    "_claim_names": GoType("map", "map[string]string", element=STRING, pointer=True),
    "_claim_sources": GoType("map", "map[string]oidc.claimSource", element=_SOURCE, pointer=True),
}
_GO_TOKEN: Final = GoType(
    "struct", "oidc.idToken", members={name: GoMember(type_, ()) for name, type_ in _MEMBERS.items()}
)
_TEXTS: Final = GoType("list", "[]string", element=STRING, pointer=True)


def untrusted_issuer(token: str) -> str:
    """Return the issuer that an unverified token claims, "" if there is none or the text is no token."""
    if len(token) > MAX_TOKEN or token.count(".") != 2:
        return ""
    try:
        issuer = _read_issuer(_decoded(token.split(".")[1])).iss
    except (ValueError, RecursionError):
        return ""
    return _GOOGLE if issuer == _GOOGLE_TOO else issuer


def parse_token(token: str, expected: Expectations) -> CompactToken:
    """Parse a token in compact form. Raises AuthenticationError."""
    parts = token.split(".")
    if len(parts) != 3:
        raise AuthenticationError("oidc: malformed jwt")
    try:
        for each in parts:
            _decoded(each)
        header = _read_header(_decoded(parts[0]))
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, _Base64Error) else "the header cannot be read"
        raise AuthenticationError(f"oidc: malformed jwt: {reason}") from None
    if header.alg not in expected.algorithms:
        wanted = " ".join(map(quote, expected.algorithms))
        raise AuthenticationError(
            f"oidc: id token signed with unsupported algorithm, expected [{wanted}] got {quote(header.alg)}"
        )
    if header.crit:  # critical extensions, none of which is supported
        raise AuthenticationError("failed to verify signature: failed to verify id token signature")
    return CompactToken(token, header.alg, header.kid)


class _Base64Error(ValueError):
    """A text that is not base64url."""


def _decoded(text: str) -> bytes:
    """Decode base64url without padding (RFC 7515, section 2). Raises ValueError."""
    if "=" in text:
        raise _Base64Error(f"illegal base64 data at input byte {text.index('=')}")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise _Base64Error(f"illegal base64 data at input byte {_first_illegal(text)}") from None


def _first_illegal(text: str) -> int:
    wrong = _ILLEGAL.search(text)
    return len(text) & ~3 if wrong is None else wrong.start()


def read_token(payload: bytes) -> IdToken:
    """Return the claims of a token's payload. Raises AuthenticationError."""
    try:
        return _read_token(payload)
    except (ValueError, RecursionError):
        why = _wrong_with(payload)
    raise AuthenticationError(f"oidc: failed to unmarshal claims: {why}")


def _wrong_with(payload: bytes) -> str:
    try:
        unmarshal(_GO_TOKEN, payload)
        claims = msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
        unmarshal(_TEXTS, bytes(claims.get("aud", b"null")))
    except DecodeError as error:
        return str(error)
    except (ValueError, RecursionError):
        pass
    return "they are not those of an ID token"


def check_token(token: IdToken, expected: Expectations, now: float) -> None:
    """Raise AuthenticationError unless a token with a valid signature meets the requirements at `now` (seconds)."""
    for source in (token.claim_names or {}).values():
        if not source:
            raise AuthenticationError("oidc: failed to obtain source from claim name")
        if source not in (token.claim_sources or {}):
            raise AuthenticationError("oidc: source does not exist")
    issuer = expected.issuer
    if token.iss != issuer and not (issuer == _GOOGLE and token.iss == _GOOGLE_TOO):
        raise AuthenticationError(
            f"oidc: id token issued by a different provider, expected {quote(issuer)} got {quote(token.iss)}"
        )
    audiences = expected.audiences
    if len(audiences) == 1 and audiences[0] not in token.audiences:
        raise AuthenticationError(f"oidc: expected audience {quote(audiences[0])} got {_quoted(token.audiences)}")
    if _seconds(token.exp) < now:
        raise AuthenticationError(f"oidc: token is expired (Token Expiry: {_moment(_seconds(token.exp))})")
    if token.nbf is not None and now + _LEEWAY < _seconds(token.nbf):
        raise AuthenticationError(
            f"oidc: current time {_moment(now)} before the nbf (not before) time: {_moment(_seconds(token.nbf))}"
        )
    if not any(each in audiences for each in token.audiences):
        raise AuthenticationError(
            f"oidc: expected audience in {_quoted(sorted(audiences))} got {_quoted(token.audiences)}"
        )


def _quoted(texts: Sequence[str]) -> str:
    return f"[{' '.join(map(quote, texts))}]"


def _seconds(moment: float) -> int:
    return max(-_LONGEST_AGE, min(int(moment), _LONGEST_AGE))


def _moment(seconds: float) -> str:
    """Return a time as Go prints it, in UTC."""
    try:
        return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M:%S} +0000 UTC"
    except (ValueError, OverflowError, OSError):
        return str(int(seconds))


def claims_of(payload: bytes) -> dict[str, Any]:
    """Return all claims of a payload. Raises AuthenticationError."""
    try:
        return msgspec.json.decode(payload, type=dict[str, Any])
    except (ValueError, RecursionError):
        raise AuthenticationError("oidc: parse claims: they are no JSON object") from None
