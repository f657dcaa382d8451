"""Certificates for a server without configured ones: a CA, a serving certificate and an administrator's certificate.

They are created once in a folder, and reused until they are about to expire or no longer name the server. Creating them
imports `cryptography`; a start that finds valid ones does not, as it reads only a small note about them.

Clients trust the CA, so a damaged CA is refused and never replaced. Certificates that it issued can be issued again; a
file that was modified by others is renamed before it is replaced.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from steersman.machinery.go.strings import to_lower
from steersman.machinery.private_files import make_folders, read_own, set_aside, warn_of_access, write_whole
from steersman.server.kubeconfigs import Context, embedded, kubeconfig

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName, KeyUsage, Name, ObjectIdentifier

logger = logging.getLogger(__name__)

ADMIN_USER: Final = "kubernetes-admin"
ADMIN_GROUP: Final = "system:masters"
LOOPBACK_NAME: Final = "apiserver-loopback-client"
"""Server name for the folder's own certificate if another one is configured, as upstream's own client uses it."""

_CA_NAME: Final = "steersman-ca"
_CA_LIFE: Final = timedelta(days=3650)
_LIFE: Final = timedelta(days=365)
_RENEW_BEFORE: Final = timedelta(days=30)
_BACKDATE: Final = timedelta(hours=1)
"""Time by which certificates begin before their creation, for clients whose clocks are behind."""

_NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
)


class CertificateError(Exception):
    """A CA in the folder that cannot be used; its files are left unchanged."""


class CertificateFiles(Struct, frozen=True):
    """Paths of the certificates and keys, all PEM; key files are readable by their owner only."""

    folder: Path

    @property
    def ca(self) -> Path:
        """Return the path of the CA's certificate."""
        return self.folder / "ca.crt"

    @property
    def ca_key(self) -> Path:
        """Return the path of the CA's key."""
        return self.folder / "ca.key"

    @property
    def server(self) -> Path:
        """Return the path of the serving certificate."""
        return self.folder / "apiserver.crt"

    @property
    def server_key(self) -> Path:
        """Return the path of the serving certificate's key."""
        return self.folder / "apiserver.key"

    @property
    def admin(self) -> Path:
        """Return the path of the administrator's client certificate."""
        return self.folder / "admin.crt"

    @property
    def admin_key(self) -> Path:
        """Return the path of the administrator's key."""
        return self.folder / "admin.key"

    @property
    def note(self) -> Path:
        """Return the path of the note about the files, which makes a start quick."""
        return self.folder / "certificates.json"


class _Note(msgspec.Struct, forbid_unknown_fields=True):
    """Data about the files for a start: the served names, the earliest expiry, and the digests of the files."""

    hosts: list[str]
    not_after: float
    digests: dict[str, str]


class _Identity(Struct, frozen=True):
    """A certificate with its key."""

    certificate: Certificate
    key: EllipticCurvePrivateKey


def ensure_certificates(
    folder: str | Path, hosts: Sequence[str] = (), *, now: datetime | None = None
) -> CertificateFiles:
    """Return the certificates in `folder`, created or renewed as needed.

    The serving certificate names the local host, `kubernetes` in its usual forms, and `hosts` (names and addresses:
    those of the server, and its first Service IP). A serving or administrator's certificate that expires within 30
    days, or does not name all hosts, is issued again by the same CA, so that clients which trust the CA keep working.
    The CA is replaced when it is about to expire; the old one is kept under another name.

    Raises OSError, CertificateError for an existing CA that cannot be used, and ValueError for a host that no
    certificate can name.
    """
    files = CertificateFiles(Path(folder))
    now = now or datetime.now(UTC)
    wanted = [*dict.fromkeys((*_NAMES, to_lower(socket.gethostname()), *map(_normal, hosts)))]
    if not _is_current(files, wanted, now):
        _make(files, wanted, now)
    return files


def admin_kubeconfig(url: str, files: CertificateFiles, server_name: str = "") -> bytes:
    """Return a self-contained kubeconfig (JSON, which is YAML) for the administrator of the server at `url`.

    Clients ask for the certificate of `server_name`, if given.
    """
    keys = {"client-certificate-data": embedded(files.admin), "client-key-data": embedded(files.admin_key)}
    return kubeconfig({"steersman": Context(url, files.ca, ADMIN_USER, keys, server_name)})


def _normal(host: str) -> str:
    """Return a host as a certificate names it: addresses in their shortest form, names in lower case."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return to_lower(host).rstrip(".")


def _pairs(files: CertificateFiles) -> tuple[Path, ...]:
    return files.ca, files.ca_key, files.server, files.server_key, files.admin, files.admin_key


def _is_current(files: CertificateFiles, hosts: Iterable[str], now: datetime) -> bool:
    """Return True if, according to the note, the present files can be used."""
    note = _read_note(files)
    if note is None or now.timestamp() > note.not_after - _RENEW_BEFORE.total_seconds():
        return False
    try:
        digests = {path.name: _digest(path) for path in _pairs(files)}
    except FileNotFoundError:
        return False
    if note.digests != digests or not set(hosts) <= set(note.hosts):
        return False
    for path in (files.ca_key, files.server_key, files.admin_key):
        warn_of_access(path)
    return True


def _read_note(files: CertificateFiles) -> _Note | None:
    """Return the note, None if it is missing or malformed: losing it costs only time."""
    try:
        return msgspec.json.decode(read_own(files.note), type=_Note)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _digest(path: Path) -> str:
    return sha256(read_own(path)).hexdigest()


def _make(files: CertificateFiles, hosts: Sequence[str], now: datetime) -> None:
    from cryptography.x509.oid import ExtendedKeyUsageOID

    make_folders(files.folder)
    note = _read_note(files)
    authority = _authority(files, now)
    server = _issue(
        authority, _name("kube-apiserver"), now, ExtendedKeyUsageOID.SERVER_AUTH, [_general(host) for host in hosts]
    )
    admin = _issue(authority, _name(ADMIN_USER, ADMIN_GROUP), now, ExtendedKeyUsageOID.CLIENT_AUTH, [])
    for certificate, key in ((files.server, files.server_key), (files.admin, files.admin_key)):
        if note is not None or not _is_issued(authority, certificate, key):
            _keep_what_is_not_ours(certificate, note)
            _keep_what_is_not_ours(key, note)
    _write_identity(files.server, files.server_key, server)
    _write_identity(files.admin, files.admin_key, admin)
    ends = min(each.certificate.not_valid_after_utc for each in (authority, server, admin))
    note = _Note(list(hosts), ends.timestamp(), {path.name: _digest(path) for path in _pairs(files)})
    write_whole(files.note, msgspec.json.encode(note), 0o644)


def _is_issued(authority: _Identity, certificate: Path, key: Path) -> bool:
    """Return True if the CA issued this certificate for this key: without a note, this shows which files are ours."""
    from cryptography.exceptions import InvalidSignature

    try:
        found, private = _stored_certificate(certificate), _stored_key(key)
        if found is None or private is None or found.public_key() != private.public_key():
            return False
        found.verify_directly_issued_by(authority.certificate)
    except (CertificateError, ValueError, TypeError, InvalidSignature):
        return False
    return True


def _keep_what_is_not_ours(path: Path, note: _Note | None) -> None:
    """Rename a file that differs from the note, with a warning; an empty file needs no copy."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    if data and (note is None or note.digests.get(path.name) != sha256(data).hexdigest()):
        logger.warning(
            "%s was modified; it has been renamed to %s, and a new one has been created", path, set_aside(path)
        )
    elif not data:
        logger.warning("%s was empty; a new one has been created", path)


def _authority(files: CertificateFiles, now: datetime) -> _Identity:
    """Return the CA in the folder, or a new one if there is none or it expires before the certificates that it would
    issue.

    A key without its certificate (left by an interrupted start) gets a new certificate: clients that trust the old
    certificate trust signatures of the key. Raises CertificateError for damaged files, and OSError.
    """
    certificate, key = _stored_certificate(files.ca), _stored_key(files.ca_key)
    if key is None and certificate is not None:
        raise CertificateError(
            f"{files.ca} is there without {files.ca_key}: put the key back, or move the certificate away to have a new "
            "authority made, which clients do not trust yet"
        )
    if key is None:
        authority = _new_authority(now)
        _write_identity(files.ca, files.ca_key, authority)
        return authority
    if certificate is None:
        logger.warning("%s is missing; a new certificate for %s has been created", files.ca, files.ca_key)
        authority = _new_authority(now, key)
        _write_certificate(files.ca, authority)
        return authority
    if key.public_key() != certificate.public_key():
        raise CertificateError(f"{files.ca_key} is not the key of {files.ca}: put back the one that belongs to it")
    if now + _LIFE <= certificate.not_valid_after_utc:
        return _Identity(certificate, key)
    names = ", ".join(str(set_aside(path)) for path in (files.ca, files.ca_key))
    logger.warning(
        "the CA in %s expires on %s; a new one has been created, which clients do not trust yet (the old one: %s)",
        files.ca,
        certificate.not_valid_after_utc.date(),
        names,
    )
    authority = _new_authority(now)
    _write_identity(files.ca, files.ca_key, authority)
    return authority


_REPAIR: Final = "put back a copy, or move ca.crt and ca.key away to have a new authority made"


def _stored_certificate(path: Path) -> Certificate | None:
    """Return the certificate at `path`, None if there is no file. Raises CertificateError and OSError."""
    from cryptography.x509 import load_pem_x509_certificate

    try:
        return load_pem_x509_certificate(read_own(path))
    except FileNotFoundError:
        return None
    except ValueError:
        raise CertificateError(f"{path} holds no valid certificate: {_REPAIR}") from None


def _stored_key(path: Path) -> EllipticCurvePrivateKey | None:
    """Return the key at `path`, None if there is no file. Raises CertificateError and OSError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(read_own(path), password=None)
        warn_of_access(path)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CertificateError(f"{path} holds no valid key: {_REPAIR}") from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise CertificateError(f"{path} holds a key of another kind than this server makes: {_REPAIR}")
    return key


def _new_authority(now: datetime, key: EllipticCurvePrivateKey | None = None) -> _Identity:
    """Return a self-signed CA, with a new key unless one is given."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256

    key = key or ec.generate_private_key(ec.SECP256R1())
    name = _name(_CA_NAME)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + _CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )
    return _Identity(certificate, key)


def _issue(
    authority: _Identity, subject: Name, now: datetime, usage: ObjectIdentifier, names: Sequence[GeneralName]
) -> _Identity:
    """Return a new key with a certificate issued by the CA."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256

    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(issuer, critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _Identity(builder.sign(authority.key, SHA256()), key)


def _key_usage(*, signs_certificates: bool) -> KeyUsage:
    from cryptography.x509 import KeyUsage

    return KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str, organization: str = "") -> Name:
    from cryptography.x509 import Name, NameAttribute
    from cryptography.x509.oid import NameOID

    attributes = [NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return Name([*attributes, NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general(host: str) -> GeneralName:
    from cryptography.x509 import DNSName, IPAddress

    try:
        return IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return DNSName(host)


def _write_identity(certificate: Path, key: Path, identity: _Identity) -> None:
    """Write the key first: an interruption leaves a key, for which a certificate can be issued again."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    write_whole(key, identity.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    _write_certificate(certificate, identity)


def _write_certificate(path: Path, identity: _Identity) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding

    write_whole(path, identity.certificate.public_bytes(Encoding.PEM), 0o644)
