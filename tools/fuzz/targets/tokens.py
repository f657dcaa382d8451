"""Tokens: of service accounts, of other issuers, and the keys of these. What nobody has signed is nobody's."""

from __future__ import annotations

from functools import cache
from typing import Final

from steersman.authentication.interface import AuthenticationError
from steersman.authentication.jwt import id_token, key_set
from steersman.authentication.service_account_keys import ServiceAccountKeys, make_signing_key
from steersman.authentication.service_account_tokens import TokenVerifier, sign
from tools.fuzz.target import Target, same

_SIGNED: Final = b"@SIGNED@"
"""Stands in inputs for a token that this process has signed; its key is another one each time."""
_ALGORITHMS: Final = ("RS256", "ES256")


@cache
def _keys() -> tuple[ServiceAccountKeys, str]:
    keys = ServiceAccountKeys(make_signing_key(), trusted=True)
    return keys, sign(keys, {"iss": "https://issuer", "sub": "system:serviceaccount:default:a", "exp": 4_000_000_000})


@cache
def _verifier() -> TokenVerifier:
    return TokenVerifier(_keys()[0])


def _put(data: bytes) -> str:
    return data.replace(_SIGNED, _keys()[1].encode()).decode("utf-8", "replace")


def service_account_token(data: bytes) -> str:
    """A token that is good says what was signed."""
    token = _put(data)
    payload = _verifier().verify(token, "")
    same(token.rpartition(".")[0], _keys()[1].rpartition(".")[0], "what a good token says")
    return "good" if payload else "empty"


def issuers_token(data: bytes) -> str:
    """The parts of a token of another issuer, and what it claims."""
    token = _put(data)
    id_token.untrusted_issuer(token)
    expected = id_token.Expectations(issuer="https://issuer", audiences=("a",), algorithms=_ALGORITHMS)
    parsed = id_token.parse_token(token, expected)
    found = id_token.read_token(id_token._decoded(token.split(".")[1]))
    id_token.check_token(found, expected, 1_700_000_000.0)
    return parsed.algorithm


def keys_of_issuer(data: bytes) -> int:
    """The keys that an issuer publishes."""
    return len(key_set.read_keys(data))


_WORDS: Final = (
    _SIGNED,
    b".",
    b"eyJhbGciOiJub25lIn0",
    b"eyJhbGciOiJFUzI1NiJ9",
    b"eyJpc3MiOiJodHRwczovL2lzc3VlciJ9",
    b"AA",
    b"eyJhbGciOiJIUzI1NiJ9",
    b"=",
    b"-",
    b"_",
    b"e30",
)
_KEY_WORDS: Final = (
    b'{"keys":[',
    b'{"kty":"RSA","n":"AQAB","e":"AQAB"}',
    b'{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}',
    b'"kid":"a"',
    b'"use":"sig"',
    b'"alg":"RS256"',
    b'"kty":"oct"',
    b'"n":""',
    b'"e":"AA"',
    b'"d":"AA"',
)

TARGETS: Final = (
    Target("service-account-token", service_account_token, (AuthenticationError,), _WORDS),
    Target("id-token", issuers_token, (AuthenticationError,), _WORDS),
    Target("web-keys", keys_of_issuer, (key_set.KeySetError,), _KEY_WORDS, base=0.5),
)
