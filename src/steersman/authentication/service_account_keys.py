"""The keys that sign and verify service account tokens, and the public documents about them.

Anyone who wants to verify a token finds the issuer's OpenID discovery document and its JSON Web Key Set (RFC 7517),
as kube-apiserver serves them. Keys are parsed when first needed: a start with a key on disk costs a read and a look at
its numbers.
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

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey
    Public = RSAPublicKey | EllipticCurvePublicKey

JWKS_PATH: Final = "/openid/v1/jwks"
CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
JWKS_MEDIA_TYPE: Final = "application/jwk-set+json"

_PEM_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n.*?-----END \1-----", re.DOTALL)
_CURVES: Final = {"secp256r1": ("P-256", "ES256"), "secp384r1": ("P-384", "ES384"), "secp521r1": ("P-521", "ES512")}


class KeyFileError(Exception):
    """A key file that holds no key of a kind that can sign tokens, or verify them."""


class JSONWebKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A public key in a JSON Web Key Set, its fields in kube-apiserver's order."""

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
    """A public key with its id and the one algorithm (RFC 7518) that tokens signed with it use."""

    key: Public
    key_id: str
    algorithm: str


class ServiceAccountKeys:
    """The key that signs tokens and all that verify them (the signing key's own among them)."""

    def __init__(self, signing: bytes, verification: Sequence[bytes] = (), *, trusted: bool = False) -> None:
        """Takes PEM: one private key, and any texts with public or private keys or certificates.

        A `trusted` key, which this server made itself, is not checked for being prime and so on; that takes long.

        Without `verification` only tokens signed with `signing` verify. Nothing is parsed here; `check` does.
        """
        self._signing_pem = signing
        self._verification_pem = tuple(verification) or (signing,)
        self._trusted = trusted

    @classmethod
    def load(cls, signing_file: str | Path, key_files: Sequence[str | Path] = ()) -> ServiceAccountKeys:
        """Keys from files (`--service-account-signing-key-file`, `--service-account-key-file`).

        Raises OSError, and KeyFileError for a file that holds no key.
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
        """The signing key kept at `path`, made there (mode 0600) if there is none; those in `key_files` verify too.

        A key of the kind that is made here is known to be sound by its own numbers; any other is parsed. Raises
        OSError, and KeyFileError, with the file left as it is, if there is no key in it.
        """
        path = Path(path)
        try:
            pem = read_own(path)
        except FileNotFoundError:
            make_folders(path.parent)
            write_new(path, make_signing_key())
            pem = read_own(path)  # another server may have been first
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
        """Parses everything. Raises KeyFileError."""
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
        """The public half of the signing key: its id and algorithm go into every token's header."""
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

    def by_key_id(self, key_id: str) -> tuple[VerificationKey, ...]:
        """The keys a token may have been signed with: the one it names, or all if it names none."""
        if not key_id:
            return self.verification_keys
        return tuple(each for each in self.verification_keys if each.key_id == key_id)

    @cached_property
    def jwks(self) -> bytes:
        """The JSON Web Key Set served at `JWKS_PATH` as `JWKS_MEDIA_TYPE`."""
        return key_set(self.verification_keys)

    def openid_configuration(self, issuer: str, jwks_uri: str) -> bytes:
        """The discovery document served at `CONFIGURATION_PATH` (OpenID Connect Discovery 1.0, section 3).

        Raises ValueError if the issuer, or the address of the key set, is not one that OpenID allows; the server
        then serves neither document.
        """
        return openid_configuration(self.verification_keys, issuer, jwks_uri)


def key_set(keys: Iterable[VerificationKey]) -> bytes:
    """The JSON Web Key Set of these keys."""
    return _JSON.encode({"keys": [_web_key(each) for each in keys]})


def openid_configuration(keys: Iterable[VerificationKey], issuer: str, jwks_uri: str) -> bytes:
    """The discovery document of an issuer who signs with these keys. Raises ValueError."""
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
    """Raises ValueError unless `issuer` is a URL as OpenID Connect Discovery wants it."""
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
    """Where the key set is if nothing else is configured; `external_address` is host or host:port."""
    return f"https://{external_address}{JWKS_PATH}"


def make_signing_key() -> bytes:
    """A new RSA key of 2048 bits as PEM: RS256 is the one algorithm that every verifier of OpenID tokens knows.

    Takes about 0.1 s, without holding the interpreter: call it in a thread where a loop is running.
    """
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def is_sound(pem: bytes) -> bool:
    """Whether this is one whole RSA private key as `make_signing_key` makes it (RFC 8017, A.1.2, in PEM).

    Tells in microseconds what parsing with `cryptography` would, by the relations between the key's numbers.
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
    """The members of an ASN.1 SEQUENCE of INTEGERs in DER, None if these bytes are anything else."""
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
    """The content of the element at `pos` and where it ends; None if it is cut off or has another tag."""
    if len(data) < pos + 2 or data[pos] != tag:
        return None, pos
    size, pos = data[pos + 1], pos + 2
    if size & 0x80:
        width = size & 0x7F
        size, pos = int.from_bytes(data[pos : pos + width], "big"), pos + width
    content = data[pos : pos + size]
    return (content, pos + size) if len(content) == size else (None, pos)


def key_id(key: Public) -> str:
    """A public key's id in tokens and key sets: a hash of it, in base64url, as kube-apiserver computes it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return _base64url(sha256(der).digest())


_JSON: Final = msgspec.json.Encoder()


def _verification_key(key: Public) -> VerificationKey:
    return VerificationKey(key, key_id(key), algorithm_of(key))


def algorithm_of(key: Public) -> str:
    """The one that signs with it. Raises KeyFileError for a curve that JSON Web Algorithms does not know."""
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
    """The blocks of a PEM text with their kinds; what stands between them is passed over."""
    for match in _PEM_BLOCK.finditer(pem):
        yield match[1], match[0] + b"\n"


def _private_key(block: bytes, *, trusted: bool = False) -> PrivateKey | None:
    """The RSA or elliptic curve key in a PEM block, None if it is another thing or locked."""
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
    """The RSA or elliptic curve public key that a PEM block holds, or that belongs to what it holds."""
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
