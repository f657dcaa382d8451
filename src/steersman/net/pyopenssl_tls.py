"""Server side TLS that requests a client certificate and accepts any: authentication happens after the handshake.

Python's `ssl` fails the handshake if it cannot verify the certificate, so that the client gets no HTTP answer. Go's
servers complete the handshake (`RequestClientCert`) and answer 401. pyOpenSSL can do the same; its connections are
wrapped here in the interface of `ssl.SSLObject`, which event loops use.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from steersman.net.ascii import lower

if TYPE_CHECKING:  # takes 0.1 s to load, and most servers request no client certificates
    from OpenSSL.SSL import Connection, Context

_FED: Final = 64 * 1024
"""Bytes that are passed to OpenSSL at once."""
_RECORD: Final = 16 * 1024
_OVERHEAD: Final = 512
"""Upper bound of the bytes that a TLS record adds to its content."""
_USUAL_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:!aNULL:!eNULL:!SHA1:!AESCCM"
_PLAIN_HTTP: Final = "HTTP_REQUEST"
_NO_RENEGOTIATION: Final = 1 << 30
_NO_COMPRESSION: Final = 1 << 17
_VERSIONS: Final = {ssl.TLSVersion.TLSv1_2: 0x0303, ssl.TLSVersion.TLSv1_3: 0x0304}


def pyopenssl_context(
    cert_file: str,
    key_file: str,
    *,
    client_ca_files: Sequence[str],
    min_version: ssl.TLSVersion,
    ciphers: str | None,
    curves: Sequence[str],
    protocols: Sequence[str],
    choose: Callable[[str | None], Context],
) -> Context:
    """Return a context for one certificate.

    `client_ca_files` are PEM files of certificate authorities; their names are sent to clients as the issuers of acceptable
    certificates. `choose` returns the context for a server name (SNI). `curves` are key exchange groups in order of
    preference; if it is empty, OpenSSL's defaults apply.

    Raises OSError or ssl.SSLError if the files cannot be used.
    """
    from OpenSSL import SSL, crypto

    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    try:
        context.use_certificate_chain_file(cert_file)
        with open(key_file, "rb") as file:
            # Without a password argument OpenSSL would prompt on the terminal for the password of an encrypted key.
            key: Any = crypto.load_privatekey(crypto.FILETYPE_PEM, file.read(), b"").to_cryptography_key()
        context.use_privatekey(key)
        context.check_privatekey()
        context.set_cipher_list((ciphers or _USUAL_CIPHERS).encode())
        _set_curves(context, curves)
    except (SSL.Error, crypto.Error) as error:
        raise _as_ssl_error(error) from None
    context.set_min_proto_version(_VERSIONS[min_version])
    # A resumed session would keep accepting a client certificate after the removal of its CA.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_session_id(b"steersman")
    context.set_options(SSL.OP_NO_TICKET | _NO_COMPRESSION | _NO_RENEGOTIATION)
    context.set_verify(SSL.VERIFY_PEER, _accept_any)
    offered = [each.encode() for each in protocols]
    context.set_alpn_select_callback(
        lambda _, theirs: next((each for each in offered if each in theirs), SSL.NO_OVERLAPPING_PROTOCOLS)
    )
    context.set_tlsext_servername_callback(lambda connection: connection.set_context(choose(_name_of(connection))))
    _add_client_ca_names(context, client_ca_files)
    return context


def _set_curves(context: Context, curves: Sequence[str]) -> None:
    """Set the key exchange groups of `context`. Raises ssl.SSLError for an unknown group.

    pyOpenSSL exposes only the setting of one curve (`set_tmp_ecdh`); the library below it has the function for several.
    """
    from OpenSSL import SSL

    if not curves:
        return
    library, of_context = SSL._lib, context._context  # type: ignore[attr-defined]
    if library.SSL_CTX_set1_curves_list(of_context, ":".join(curves).encode()) != 1:
        library.ERR_clear_error()
        raise ssl.SSLError(1, f"OpenSSL does not have all of the key exchanges {', '.join(curves)}")


def _accept_any(*_: object) -> bool:
    return True


def _name_of(connection: Connection) -> str | None:
    name = connection.get_servername()
    return None if name is None else lower(name.decode("latin-1"))


def _add_client_ca_names(context: Context, files: Sequence[str]) -> None:
    from cryptography.x509 import load_pem_x509_certificates

    for name in files:
        with open(name, "rb") as file:
            for certificate in load_pem_x509_certificates(file.read()):
                context.add_client_ca(certificate)


def _as_ssl_error(error: Exception) -> ssl.SSLError:
    """Convert an error of pyOpenSSL to `ssl.SSLError`; `reason` is set only if the client speaks plain HTTP."""
    reasons = error.args[0] if error.args else ()
    last = reasons[-1][-1] if isinstance(reasons, list) and reasons else str(error)
    raised = ssl.SSLError(1, str(last))
    # an SSLError constructed in Python has no such attribute
    raised.reason = _PLAIN_HTTP if last == "http request" else ""
    return raised


class PyOpenSSLContext(ssl.SSLContext):
    """SSL context for `create_server()` that wraps connections by the pyOpenSSL context which `context()` returns."""

    _context: Callable[[], Context]

    def __new__(cls, _: Callable[[], Context]) -> PyOpenSSLContext:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context

    def wrap_bio(  # type: ignore[override]  # the arguments that event loops pass
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, server_side: bool = False, *_: Any, **__: Any
    ) -> PyOpenSSLObject:
        """Return the server side of a connection."""
        assert server_side
        return PyOpenSSLObject(self._context(), incoming, outgoing)


class PyOpenSSLObject:
    """The server side of one connection, with the methods of `ssl.SSLObject` that event loops call.

    A client that speaks plain HTTP passes the handshake, see `net.tls.ServerSide`.
    """

    plain_http = False

    def __init__(self, context: Context, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        from OpenSSL import SSL

        self._incoming = incoming
        self._outgoing = outgoing
        self._again = SSL.WantReadError
        self._closed = SSL.ZeroReturnError
        self._cut_off = SSL.SysCallError
        self._error = SSL.Error
        self._connection = SSL.Connection(context)
        self._connection.set_accept_state()
        self._has_fed = False
        """True if OpenSSL may hold input that it has not decrypted yet."""

    def do_handshake(self) -> None:
        """Continue the handshake. Raises ssl.SSLError; SSLWantReadError if more input is needed."""
        self._feed()
        try:
            self._connection.do_handshake()
        except self._again:
            raise ssl.SSLWantReadError from None
        except self._cut_off:
            raise ssl.SSLEOFError(8, "EOF occurred in violation of protocol") from None
        except self._error as error:
            ssl_error = _as_ssl_error(error)
            if ssl_error.reason != _PLAIN_HTTP:
                raise ssl_error from None
            self.plain_http = True
        finally:
            self._flush()

    def read(self, size: int, buffer: Any = None) -> Any:
        """Return decrypted bytes, or fill `buffer` and return their number; b"" or 0 at the end of the stream. Raises
        ssl.SSLError.
        """
        self._feed()
        while True:
            try:
                if buffer is None:
                    return self._connection.recv(size)
                return self._connection.recv_into(buffer, size)
            except self._again:
                if not self._feed():
                    self._has_fed = False
                    raise ssl.SSLWantReadError from None
            except self._closed:
                return b"" if buffer is None else 0
            except self._cut_off:
                raise ssl.SSLEOFError(8, "EOF occurred in violation of protocol") from None
            except self._error as error:
                self._flush()
                raise _as_ssl_error(error) from None

    def write(self, data: Any) -> int:
        """Encrypt all of `data` for sending and return the number of bytes. Raises ssl.SSLError."""
        view = memoryview(data)
        sent = 0
        try:
            while sent < len(view):
                sent += self._connection.send(view[sent : sent + _RECORD])
                self._flush(_RECORD + _OVERHEAD)
        except self._again:  # cannot happen without renegotiation, which is disabled
            raise ssl.SSLWantReadError from None
        except self._error as error:
            raise _as_ssl_error(error) from None
        return sent

    def unwrap(self) -> None:
        """Close the TLS session and wait for the client to close it too. Raises ssl.SSLError."""
        self._feed()
        try:
            if not self._connection.shutdown():
                self._feed()
                if not self._connection.shutdown():
                    raise ssl.SSLWantReadError
        except self._again:
            raise ssl.SSLWantReadError from None
        except self._cut_off:
            raise ssl.SSLEOFError(8, "EOF occurred in violation of protocol") from None
        except self._error as error:
            raise _as_ssl_error(error) from None
        finally:
            self._flush()

    def pending(self) -> int:
        """Return a lower bound of the readable bytes; event loops test it for being nonzero."""
        return self._connection.pending() or int(self._has_fed)

    def getpeercert(self, binary_form: Any = False) -> Any:
        """Return the client's certificate (DER), or None without a certificate or unless `binary_form` is true."""
        if self.plain_http or not binary_form:
            return None
        peer_certificate = self._connection.get_peer_certificate(as_cryptography=True)
        return None if peer_certificate is None else _der(peer_certificate)

    def peer_chain(self) -> tuple[bytes, ...]:
        """Return the certificates (DER) that the client has sent, the client's own included. They are not verified."""
        chain = self._connection.get_peer_cert_chain(as_cryptography=True) or ()
        return tuple(_der(each) for each in chain)

    def selected_alpn_protocol(self) -> str | None:
        """Return the protocol negotiated by ALPN, or None."""
        return self._connection.get_alpn_proto_negotiated().decode() or None

    def cipher(self) -> tuple[str, str, int] | None:
        """Return the name, the TLS version and the secret bits of the cipher suite, or None before the handshake."""
        name = self._connection.get_cipher_name()
        if name is None:
            return None
        return name, self._connection.get_cipher_version() or "", self._connection.get_cipher_bits() or 0

    def version(self) -> str | None:
        """Return the TLS version."""
        return self._connection.get_protocol_version_name()

    def compression(self) -> None:
        """Return None: compression is disabled."""

    def _feed(self) -> bool:
        """Pass some of the received bytes to OpenSSL; return True if there were any."""
        data = self._incoming.read(_FED)
        if data:
            self._connection.bio_write(data)
            self._has_fed = True
            return True
        if self._incoming.eof:
            self._connection.bio_shutdown()
        return False

    def _flush(self, size: int = _RECORD) -> None:
        """Move OpenSSL's output to the outgoing buffer, in pieces of at most `size` bytes."""
        while True:
            try:
                data = self._connection.bio_read(size)
            except self._again:
                return
            self._outgoing.write(data)
            if len(data) < size:
                return


def _der(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    data: bytes = certificate.public_bytes(Encoding.DER)
    return data
