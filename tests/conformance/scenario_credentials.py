"""Certificates, keys and signed tokens of users in scenarios."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

_UID: Final = ObjectIdentifier("1.3.6.1.4.1.57683.2")
_USAGES: Final = {"client": ExtendedKeyUsageOID.CLIENT_AUTH, "server": ExtendedKeyUsageOID.SERVER_AUTH}
_DAY: Final = datetime.timedelta(days=1)
_NUMBER_BYTES: Final = 32
"""Bytes of each number of a P-256 key, and of each of the two numbers of a signature."""


def make_certificate(folder: Path, name: str, asked: dict[str, Any]) -> None:
    """Write NAME.crt and NAME.key into the folder, signed by the CA called `ca`; without `ca` it is a self-signed CA.

    `asked` may have: ca, cn, o (a list), uid (a text or a list), client, server, sans (a list), days (30 by default; 0
    or less for an expired certificate), starts (days until it becomes valid).
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(asked)
    issuer, signer = subject, key
    if "ca" in asked:
        issuer = x509.load_pem_x509_certificate((folder / f"{asked['ca']}.crt").read_bytes()).subject
        pem_private_key = serialization.load_pem_private_key((folder / f"{asked['ca']}.key").read_bytes(), None)
        assert isinstance(pem_private_key, ec.EllipticCurvePrivateKey)
        signer = pem_private_key
    now = datetime.datetime.now(datetime.UTC)
    end = now + asked.get("days", 30) * _DAY
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - _DAY + asked.get("starts", 0) * _DAY)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca="ca" not in asked, path_length=None), critical=True)
    )
    usages = [usage for each, usage in _USAGES.items() if asked.get(each)]
    if usages:
        built = built.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if asked.get("sans"):
        names = x509.SubjectAlternativeName([_general_name(each) for each in asked["sans"]])
        built = built.add_extension(names, critical=False)
    certificate = built.sign(signer, hashes.SHA256())
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def _subject(asked: dict[str, Any]) -> x509.Name:
    uids = asked.get("uid", [])
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in asked.get("o", [])]
    parts += [x509.NameAttribute(NameOID.COMMON_NAME, asked["cn"])] if asked.get("cn") else []
    parts += [x509.NameAttribute(_UID, each) for each in ([uids] if isinstance(uids, str) else uids)]
    return x509.Name([x509.RelativeDistinguishedName([part]) for part in parts])


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


class Key:
    """Key that signs JSON Web Tokens, of type `rsa` or `ec`. Its id is its name."""

    def __init__(self, name: str, kind: str = "rsa") -> None:
        self.name = name
        self._key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
        if kind == "rsa":
            self._key = rsa.generate_private_key(65537, 2048)
        else:
            self._key = ec.generate_private_key(ec.SECP256R1())

    @property
    def _algorithm(self) -> str:
        return "RS256" if isinstance(self._key, rsa.RSAPrivateKey) else "ES256"

    def jwk(self) -> dict[str, str]:
        """Return the public key as an issuer publishes it."""
        numbers = self._key.public_key().public_numbers()
        if isinstance(numbers, rsa.RSAPublicNumbers):
            figures = {"kty": "RSA", "n": _number(numbers.n, 256), "e": _number(numbers.e, 3)}
        else:
            place = {"x": _number(numbers.x, _NUMBER_BYTES), "y": _number(numbers.y, _NUMBER_BYTES)}
            figures = {"kty": "EC", "crv": "P-256"} | place
        return {"use": "sig", "kid": self.name, "alg": self._algorithm} | figures

    def pem(self) -> str:
        """Return the public key in PEM."""
        public = self._key.public_key()
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return public.public_bytes(serialization.Encoding.PEM, form).decode()

    def sign(self, claims: dict[str, Any], expires: float | None = 600, header: dict[str, Any] | None = None) -> str:
        """Return a token that expires after `expires` seconds, never if None.

        `iat` and `exp` are added unless the claims have them.
        """
        now = int(time.time())
        claims = ({} if expires is None else {"iat": now, "exp": now + expires}) | claims
        header = {"alg": self._algorithm, "kid": self.name, "typ": "JWT"} | (header or {})
        signed = ".".join(_base64(json.dumps(each).encode()) for each in (header, claims))
        return f"{signed}.{_base64(self._signature(signed.encode()))}"

    def _signature(self, data: bytes) -> bytes:
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        numbers: Sequence[int] = utils.decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        return b"".join(each.to_bytes(_NUMBER_BYTES, "big") for each in numbers)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int, size: int) -> str:
    return _base64(value.to_bytes(max(size, (value.bit_length() + 7) // 8), "big"))
