"""Keys that sign and verify service account tokens, and the public documents about them.

As with kube-apiserver, a verifier of tokens can fetch the issuer's OpenID discovery document and its JSON Web Key Set
(RFC 7517). Keys are parsed on first use: a start with a key on disk only reads it and checks its numbers.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from steersman.machinery.go.pem import decode_block
from steersman.machinery.go.urls import redacted_url
from steersman.machinery.private_files import make_folders, read_own, read_private, warn_of_access, write_new
from steersman.work.patterns import late_pattern

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey
    Public = RSAPublicKey | EllipticCurvePublicKey

JWKS_PATH: Final = "/openid/v1/jwks"
_PEM_BLOCK: Final = late_pattern(rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n.*?-----END \1-----", re.DOTALL)
_CURVES: Final = {"secp256r1": ("P-256", "ES256"), "secp384r1": ("P-384", "ES384"), "secp521r1": ("P-521", "ES512")}


class KeyFileError(Exception):
    """A key file without a key that can sign or verify tokens."""


class JSONWebKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A public key in a JSON Web Key Set, with its fields in kube-apiserver's order."""

    use: str
    kty: str
    kid: str
    crv: str = ""
    alg: str
    x: str = ""
    y: str = ""
    n: str = ""
    e: str = ""


class VerificationKey(Struct, frozen=True):
    """A public key with its id and the algorithm (RFC 7518) of tokens signed with it."""

    key: Public
    key_id: str
    algorithm: str


class ServiceAccountKeys:
    """The key that signs tokens and all keys that verify them (including the signing key's own)."""

    def __init__(self, signing: bytes, verification: Sequence[bytes] = (), *, trusted: bool = False) -> None:
        """Take PEM: one private key, and any texts with public or private keys or certificates.

        A `trusted` key, which this server generated itself, is not checked for primality and the like, which takes
        long. Without `verification`, only tokens signed with `signing` verify. Nothing is parsed here, see `check`.
        """
        self._signing_pem = signing
        self._verification_pem = tuple(verification) or (signing,)
        self._trusted = trusted

    @classmethod
    def load(cls, signing_file: str | Path, key_files: Sequence[str | Path] = ()) -> ServiceAccountKeys:
        """Load keys from files (`--service-account-signing-key-file`, `--service-account-key-file`).

        Raises OSError, and KeyFileError for a file without a key.
        """
        keys = cls(read_private(signing_file), [Path(each).read_bytes() for each in key_files])
        try:
            keys.check()
        except KeyFileError as error:
            names = ", ".join(map(str, (signing_file, *key_files)))
            raise KeyFileError(f"service account keys in {names}: {error}") from None
        return keys

    @classmethod
    def load_or_make(cls, path: str | Path, key_files: Sequence[str | Path] = ()) -> ServiceAccountKeys:
        """Load the signing key at `path`, or generate it (mode 0600) if there is none; keys in `key_files` verify too.

        A key of the generated kind is recognised as valid by its numbers; any other is parsed. Raises OSError, and
        KeyFileError if there is no key in a file, which is left unchanged.
        """
        path = Path(path)
        try:
            pem = read_own(path)
        except FileNotFoundError:
            make_folders(path.parent)
            write_new(path, make_signing_key())
            pem = read_own(path)  # another server may have been faster
        warn_of_access(path)
        if is_sound(pem) and not key_files:
            return cls(pem, trusted=True)
        keys = cls(pem, [pem, *(Path(each).read_bytes() for each in key_files)])
        try:
            keys.check()
        except KeyFileError as error:
            raise KeyFileError(
                f"service account keys in {path}: {error}: put back a copy, or move the file away to have a new key "
                "made, which ends all tokens signed so far"
            ) from None
        return keys

    def check(self) -> None:
        """Parse all keys. Raises KeyFileError."""
        _ = self.signing_key, self.verification_keys

    @cached_property
    def signing_key(self) -> PrivateKey:
        """The private key. Raises KeyFileError."""
        for kind, block in _blocks(self._signing_pem):
            if kind.endswith(b"PRIVATE KEY") and (key := _private_key(block, trusted=self._trusted)) is not None:
                return key
        raise KeyFileError("data does not contain a valid RSA or ECDSA private key")

    @cached_property
    def signing(self) -> VerificationKey:
        """The public half of the signing key: its id and algorithm are in every token's header."""
        return _verification_key(self.signing_key.public_key())

    @cached_property
    def verification_keys(self) -> tuple[VerificationKey, ...]:
        """Every public key that tokens are verified with. Raises KeyFileError."""
        keys: list[VerificationKey] = []
        for pem in self._verification_pem:
            found = [
                _verification_key(key)
                for _, block in _blocks(pem)
                if (key := _public_key(block, trusted=self._trusted)) is not None
            ]
            if not found:
                raise KeyFileError("data does not contain any valid RSA or ECDSA public keys")
            keys += found
        return tuple(keys)

    @cached_property
    def jwks(self) -> bytes:
        """The JSON Web Key Set, served at `JWKS_PATH`."""
        return key_set(self.verification_keys)

    def openid_configuration(self, issuer: str, jwks_uri: str) -> bytes:
        """Return the discovery document, `/.well-known/openid-configuration` (OpenID Connect Discovery 1.0, section 3).

        Raises ValueError if OpenID does not permit the issuer or the address of the key set; the server then serves
        neither document.
        """
        return openid_configuration(self.verification_keys, issuer, jwks_uri)


def key_set(keys: Iterable[VerificationKey]) -> bytes:
    """Return the JSON Web Key Set of these keys."""
    return _JSON.encode({"keys": [_web_key(each) for each in keys]})


def openid_configuration(keys: Iterable[VerificationKey], issuer: str, jwks_uri: str) -> bytes:
    """Return the discovery document of an issuer that signs with these keys. Raises ValueError."""
    check_issuer(issuer)
    if urlsplit(jwks_uri).scheme != "https":
        raise ValueError(f"jwksURI requires https scheme, parsed as: {redacted_url(jwks_uri)}")
    return _JSON.encode(
        {
            "issuer": issuer,
            "jwks_uri": jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted({each.algorithm for each in keys}),
        }
    )


def check_issuer(issuer: str) -> None:
    """Raise ValueError unless `issuer` is a valid issuer URL of OpenID Connect Discovery."""
    url = urlsplit(issuer)
    if not issuer:
        raise ValueError("empty issuer URL")
    if url.scheme != "https":
        raise ValueError(f"issuer URL must use https scheme, got: {issuer}")
    if url.query:
        raise ValueError(f"issuer URL may not include a query, got: {issuer}")
    if url.fragment:
        raise ValueError(f"issuer URL may not include a fragment, got: {issuer}")


def default_jwks_uri(external_address: str) -> str:
    """Return the default URL of the key set; `external_address` is host or host:port."""
    return f"https://{external_address}{JWKS_PATH}"


def make_signing_key() -> bytes:
    """Return a new RSA key of 2048 bits as PEM: every verifier of OpenID tokens supports RS256.

    Takes about 0.1 s without holding the GIL; call it in a thread if an event loop is running.
    """
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def is_sound(pem: bytes) -> bool:
    """Return True for a single RSA private key as `make_signing_key` generates it (RFC 8017, A.1.2, in PEM).

    The relations between the key's numbers show in microseconds the result of parsing it with `cryptography`.
    """
    block, rest = decode_block(pem)
    if block is None or block.type != "RSA PRIVATE KEY" or rest.strip():
        return False
    numbers = _sequence_of_integers(block.content)
    if numbers is None or len(numbers) != 9 or min(numbers[1:]) < 1:
        return False
    version, n, e, d, p, q, d_p, d_q, inverse = numbers
    if version != 0 or n.bit_length() < 2048 or p * q != n or min(p, q) < 3:
        return False
    exponents = d_p == d % (p - 1) and d_q == d % (q - 1) and e * d_p % (p - 1) == 1 and e * d_q % (q - 1) == 1
    return exponents and inverse * q % p == 1


def _sequence_of_integers(der: bytes) -> list[int] | None:
    """Return the members of an ASN.1 SEQUENCE of INTEGERs in DER, None for other bytes."""
    found: list[int] = []
    content, pos = _der_element(der, 0, 0x30)
    if content is None or pos != len(der):
        return None
    pos = 0
    while pos < len(content):
        number, pos = _der_element(content, pos, 0x02)
        if number is None:
            return None
        found.append(int.from_bytes(number, "big", signed=True))
    return found


def _der_element(data: bytes, pos: int, tag: int) -> tuple[bytes | None, int]:
    """Return the content of the element at `pos` and its end; None if it is cut off or has another tag."""
    if len(data) < pos + 2 or data[pos] != tag:
        return None, pos
    size, pos = data[pos + 1], pos + 2
    if size & 0x80:
        width = size & 0x7F
        size, pos = int.from_bytes(data[pos : pos + width], "big"), pos + width
    content = data[pos : pos + size]
    return (content, pos + size) if len(content) == size else (None, pos)


def key_id(key: Public) -> str:
    """Return a public key's id: its hash in base64url, as kube-apiserver computes it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return _base64url(sha256(der).digest())


_JSON: Final = msgspec.json.Encoder()


def _verification_key(key: Public) -> VerificationKey:
    return VerificationKey(key, key_id(key), algorithm_of(key))


def algorithm_of(key: Public) -> str:
    """Return the algorithm that signs with a key. Raises KeyFileError for a curve that JSON Web Algorithms does not
    have.
    """
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, RSAPublicKey):
        return "RS256"
    if key.curve.name not in _CURVES:
        raise KeyFileError("unknown private key curve, must be 256, 384, or 521")
    return _CURVES[key.curve.name][1]


def _web_key(verification: VerificationKey) -> JSONWebKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    key, kid, algorithm = verification.key, verification.key_id, verification.algorithm
    if isinstance(key, RSAPublicKey):
        numbers = key.public_numbers()
        return JSONWebKey(use="sig", kty="RSA", kid=kid, alg=algorithm, n=_number(numbers.n), e=_number(numbers.e))
    point = key.public_numbers()
    size = (key.curve.key_size + 7) // 8
    curve = _CURVES[key.curve.name][0]
    x, y = _number(point.x, size), _number(point.y, size)
    return JSONWebKey(use="sig", kty="EC", kid=kid, crv=curve, alg=algorithm, x=x, y=y)


def _number(value: int, size: int = 0) -> str:
    return _base64url(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _blocks(pem: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the kind and text of each block in a PEM text; text between blocks is ignored."""
    for match in _PEM_BLOCK.finditer(pem):
        yield match[1], match[0] + b"\n"


def _private_key(block: bytes, *, trusted: bool = False) -> PrivateKey | None:
    """Return the RSA or elliptic curve private key in a PEM block; None for another content or an encrypted key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(block, password=None, unsafe_skip_rsa_key_validation=trusted)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, RSAPrivateKey | EllipticCurvePrivateKey) else None


def _public_key(block: bytes, *, trusted: bool = False) -> Public | None:
    """Return the RSA or elliptic curve public key of a PEM block: a public key, or that of a private key or
    certificate.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    private = _private_key(block, trusted=trusted)
    if private is not None:
        return private.public_key()
    for parse in (load_pem_public_key, lambda data: load_pem_x509_certificate(data).public_key()):
        try:
            key = parse(block)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
        return key if isinstance(key, RSAPublicKey | EllipticCurvePublicKey) else None
    return None
