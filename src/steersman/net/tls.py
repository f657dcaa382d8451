"""Server side TLS: certificates by server name, client certificates, and reloading of files.

Client certificates are verified in the handshake: it fails for a certificate without a trusted client CA. With
`defers_verification` the handshake accepts any certificate (`net.pyopenssl_tls`), and the authentication of the request verifies
it.
"""

from __future__ import annotations

import logging
import os
import ssl
import stat
from collections.abc import Sequence
from ipaddress import ip_address
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct

from steersman.net.ascii import lower
from steersman.net.log_levels import NOTICE
from steersman.net.pyopenssl_tls import PyOpenSSLContext, pyopenssl_context
from steersman.work.followed_files import FollowedFiles

log = logging.getLogger("steersman.net")

_LARGEST: Final = 3 << 20
HTTP1: Final = ("http/1.1",)
HTTP2: Final = ("h2", "http/1.1")
"""ALPN protocols in order of preference."""


class Certificate(Struct, frozen=True):
    """A certificate chain and its key, as PEM files, and the server names that they serve.

    Without names, the names in the certificate are used. `*.example.org` matches one label.
    """

    cert_file: str
    key_file: str
    names: tuple[str, ...] = ()


class ServerSide(ssl.SSLObject):
    """The server side of one connection; a plain HTTP client passes as if its handshake had succeeded.

    The event loop closes a connection whose handshake fails before the protocol gets its transport. If the handshake
    passes instead, the protocol sees `plain_http`, answers and closes; the connection is never read.
    """

    plain_http = False

    # those of the object in C, without a call of Python around each
    read = property(attrgetter("_sslobj.read"))
    write = property(attrgetter("_sslobj.write"))
    pending = property(attrgetter("_sslobj.pending"))

    def do_handshake(self) -> None:
        """Continue the handshake. Raises ssl.SSLError."""
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if error.reason != "HTTP_REQUEST":
                raise
            self.plain_http = True

    def getpeercert(self, binary_form: Any = False) -> Any:
        """Return the client's certificate as ssl.SSLObject does; None for a plain HTTP client."""
        return None if self.plain_http else super().getpeercert(binary_form)

    def peer_chain(self) -> tuple[bytes, ...]:
        """Return the certificates (DER) above the client's in its verified chain; () without a verified certificate."""
        inner = _INNER(self)  # public only from Python 3.13 on
        chain = inner.get_verified_chain() or ()
        return tuple(ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in chain[1:])


_INNER: Final = attrgetter("_sslobj")


class _Contexts:
    """TLS contexts by server name.

    Names configured for a certificate come before the names in certificates without configured names, and these before
    the names in any certificate (Go's NameToCertificate and SupportsCertificate).
    """

    def __init__(self, default: Any) -> None:
        self.default = default
        self.named: dict[str, Any] = {}
        self.extracted: dict[str, Any] = {}
        self.own: dict[str, Any] = {}

    def for_name(self, name: str) -> Any:
        """Return the context for a lower-case name, or the default."""
        if not self.own and not self.named:
            return self.default
        wildcard = f"*.{name.partition('.')[2]}"
        for each in (name, wildcard):
            for known in (self.named, self.extracted):
                if each in known:
                    return known[each]
        return self.own.get(name) or self.own.get(wildcard) or self.default


class ServerTLS:
    """The TLS configuration of a server; the first certificate serves clients that send no name, or an unknown one.

    Other certificates are found by configured names first, then by the names in them; the first match counts. For a
    client that sends no name, the name is the listening `address`. `curves` are OpenSSL's names of key exchange groups,
    and need `defers_verification`.

    Files are checked when a connection arrives, at most every two seconds. If they have changed and can be read, new
    connections use them. The constructor raises OSError or ssl.SSLError (itself an OSError) if the files cannot be
    used.
    """

    def __init__(
        self,
        certificates: Sequence[Certificate],
        *,
        client_ca_files: Sequence[str] = (),
        min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
        ciphers: str | None = None,
        curves: Sequence[str] = (),
        alpn_protocols: Sequence[str] = HTTP2,
        defers_verification: bool = False,
        address: str = "",
    ) -> None:
        if not certificates:
            raise ValueError("TLS needs a certificate")
        if curves and not defers_verification:
            raise ValueError("curves need a context of pyOpenSSL")
        self._certificates = tuple(certificates)
        self._client_ca_files = tuple(client_ca_files)
        self._min_version = min_version
        self._ciphers = ciphers
        self._curves = tuple(curves)
        self._address = address
        self._alpn_protocols = list(alpn_protocols)
        self._defers_verification = defers_verification
        self._contexts = FollowedFiles(self._names(), self._load, _refused, accepted=_accepted)
        self.context: ssl.SSLContext
        """The context for create_server(); it assigns each connection the context of the requested name."""
        if defers_verification:
            self.context = PyOpenSSLContext(self._present)
        else:
            self.context = self._verifying(self._certificates[0])
            self.context.sni_callback = self._choose
            self.context.sslobject_class = ServerSide

    def _choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        """Set the context of a connection; called in every handshake, with a server name or without."""
        self.refresh()
        connection.context = self._named(name)

    def _present(self) -> Any:
        self.refresh()
        return self._contexts.value.default

    def _named(self, name: str | None) -> Any:
        """Return the context for a server name."""
        return self._contexts.value.for_name(lower(name or self._address))

    def refresh(self, *, now: bool = False) -> None:
        """Reload changed files; check them only if the interval is over or `now` is true."""
        if now:
            self._contexts.refresh()
        else:
            self._contexts.current()

    def _names(self) -> list[str]:
        """Return the names of all files."""
        names = [name for item in self._certificates for name in (item.cert_file, item.key_file)]
        return [*names, *self._client_ca_files]

    def _load(self) -> _Contexts:
        """Return the contexts of all certificates: of `ssl`, or of pyOpenSSL. Raises OSError and ValueError."""
        for name in self._names():
            check_file(name)
        default, *others = [self._new_context(each) for each in self._certificates]
        contexts = _Contexts(default)
        if not others:
            return contexts
        for context, item in zip(others, self._certificates[1:], strict=True):
            for name in item.names:
                contexts.named.setdefault(lower(name), context)
        for context, item in zip([default, *others], self._certificates, strict=True):
            common_name, dns_names = _names_in(item.cert_file)
            if context is not default and not item.names:
                for name in filter(None, [common_name, *dns_names]):
                    contexts.extracted.setdefault(lower(name), context)
            for name in dns_names:
                contexts.own.setdefault(lower(name), context)
        return contexts

    def _new_context(self, certificate: Certificate) -> Any:
        if not self._defers_verification:
            return self._verifying(certificate)
        return pyopenssl_context(
            certificate.cert_file,
            certificate.key_file,
            client_ca_files=self._client_ca_files,
            min_version=self._min_version,
            ciphers=self._ciphers,
            curves=self._curves,
            protocols=self._alpn_protocols,
            choose=self._named,
        )

    def _verifying(self, certificate: Certificate) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._min_version
        # Without a password argument OpenSSL would prompt on the terminal for the password of an encrypted key.
        context.load_cert_chain(certificate.cert_file, certificate.key_file, password=lambda: "")
        context.set_alpn_protocols(self._alpn_protocols)
        # A resumed session would keep accepting a client certificate after the removal of its CA.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        if self._ciphers is not None:
            context.set_ciphers(self._ciphers)
        if self._client_ca_files:
            for name in self._client_ca_files:
                context.load_verify_locations(cafile=name)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def check_file(name: str) -> None:
    """Raise OSError unless a name is a regular file of at most 3 MiB: OpenSSL would wait for the writer of a pipe."""
    status = os.stat(name)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{name} is not a file")
    if status.st_size > _LARGEST:
        raise OSError(f"{name} is larger than {_LARGEST} bytes")


def _refused(error: Exception) -> None:
    log.warning("TLS files changed but cannot be used, keeping the ones loaded before: %s", error)


def _accepted() -> None:
    log.log(NOTICE, "TLS files reloaded")


def _names_in(cert_file: str) -> tuple[str, list[str]]:
    """Return the common name of a certificate, "" if it is an address, and its DNS names."""
    from cryptography import x509  # takes long to import, and few servers have several certificates

    with open(cert_file, "rb") as file:
        certificate = x509.load_pem_x509_certificate(file.read())
    common = [str(each.value) for each in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    common_name = common[-1] if common and not _is_address(common[-1]) else ""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return common_name, []
    return common_name, names.get_values_for_type(x509.DNSName)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
