"""Server side TLS that asks for a client's certificate and takes any: who it stands for is judged later.

Python's `ssl` fails the handshake of a certificate that it cannot verify; a client is then told nothing by HTTP. Go's
servers complete it (`RequestClientCert`), so that the answer can be 401. So can pyOpenSSL, whose connections are driven
here behind the interface of `ssl.SSLObject`, as event loops use it.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from steersman.net.ascii import lower

if TYPE_CHECKING:  # takes 0.1 s to load, and most servers ask for no such certificates
    from OpenSSL.SSL import Connection, Context

_FED: Final = 64 * 1024
"""Bytes that are given to OpenSSL at once."""
_RECORD: Final = 16 * 1024
_OVERHEAD: Final = 512
"""More bytes than a record is longer than what it carries."""
_USUAL_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:!aNULL:!eNULL:!SHA1:!AESCCM"
_PLAIN_HTTP: Final = "HTTP_REQUEST"
_NO_RENEGOTIATION: Final = 1 << 30
_NO_COMPRESSION: Final = 1 << 17
_VERSIONS: Final = {ssl.TLSVersion.TLSv1_2: 0x0303, ssl.TLSVersion.TLSv1_3: 0x0304}


def asking_context(
    cert_file: str,
    key_file: str,
    *,
    names_of: Sequence[str],
    min_version: ssl.TLSVersion,
    ciphers: str | None,
    curves: Sequence[str],
    protocols: Sequence[str],
    choose: Callable[[str | None], Context],
) -> Context:
    """A context for one certificate. Clients are told the authorities in the PEM files `names_of`, whose certificates
    they may show; `choose` gives the context for a server name. `curves` are key exchanges, those preferred first, or
    OpenSSL's own if there are none.

    Raises OSError or ssl.SSLError if the files cannot be used.
    """
    from OpenSSL import SSL, crypto

    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    try:
        context.use_certificate_chain_file(cert_file)
        with open(key_file, "rb") as file:
            # Without a password OpenSSL would ask for that of an encrypted key on the terminal, and wait.
            key: Any = crypto.load_privatekey(crypto.FILETYPE_PEM, file.read(), b"").to_cryptography_key()
        context.use_privatekey(key)
        context.check_privatekey()
        context.set_cipher_list((ciphers or _USUAL_CIPHERS).encode())
        _take_curves(context, curves)
    except (SSL.Error, crypto.Error) as error:
        raise _as_ssl_error(error) from None
    context.set_min_proto_version(_VERSIONS[min_version])
    # A resumed session would carry a client certificate past a CA that was removed since.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_session_id(b"steersman")
    context.set_options(SSL.OP_NO_TICKET | _NO_COMPRESSION | _NO_RENEGOTIATION)
    context.set_verify(SSL.VERIFY_PEER, _take_any)
    offered = [each.encode() for each in protocols]
    context.set_alpn_select_callback(
        lambda _, theirs: next((each for each in offered if each in theirs), SSL.NO_OVERLAPPING_PROTOCOLS)
    )
    context.set_tlsext_servername_callback(lambda connection: connection.set_context(choose(_name_of(connection))))
    _tell_names(context, names_of)
    return context


def _take_curves(context: Context, curves: Sequence[str]) -> None:
    """Raises ssl.SSLError. pyOpenSSL has what OpenSSL has for one curve only (`set_tmp_ecdh`), and the library below it
    the function for several."""
    from OpenSSL import SSL

    if not curves:
        return
    library, of_context = SSL._lib, context._context  # type: ignore[attr-defined]
    if library.SSL_CTX_set1_curves_list(of_context, ":".join(curves).encode()) != 1:
        library.ERR_clear_error()
        raise ssl.SSLError(1, f"OpenSSL does not have all of the key exchanges {', '.join(curves)}")


def _take_any(*_: object) -> bool:
    return True


def _name_of(connection: Connection) -> str | None:
    name = connection.get_servername()
    return None if name is None else lower(name.decode("latin-1"))


def _tell_names(context: Context, files: Sequence[str]) -> None:
    from cryptography.x509 import load_pem_x509_certificates

    for name in files:
        with open(name, "rb") as file:
            for certificate in load_pem_x509_certificates(file.read()):
                context.add_client_ca(certificate)


def _as_ssl_error(error: Exception) -> ssl.SSLError:
    """An error of pyOpenSSL as `ssl` has it; its reason is empty unless that is plain HTTP."""
    found = error.args[0] if error.args else ()
    last = found[-1][-1] if isinstance(found, list) and found else str(error)
    raised = ssl.SSLError(1, str(last))
    raised.reason = _PLAIN_HTTP if last == "http request" else ""  # one that Python makes has no such attribute
    return raised


class AskingTLS(ssl.SSLContext):
    """What create_server() takes, which makes connections of `context()`."""

    _context: Callable[[], Context]

    def __new__(cls, _: Callable[[], Context]) -> AskingTLS:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context

    def wrap_bio(  # type: ignore[override]  # what loops need of an SSLObject
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, server_side: bool = False, *_: Any, **__: Any
    ) -> AskedConnection:
        """The server's side of a connection."""
        assert server_side
        return AskedConnection(self._context(), incoming, outgoing)


class AskedConnection:
    """The server's side of one connection, as `ssl.SSLObject` with the methods that loops call.

    A client that speaks plain HTTP passes, see `net.tls.ServerSide`.
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
        """Whether OpenSSL may have something that it has not decrypted yet."""

    def do_handshake(self) -> None:
        """Goes on with the handshake. Raises ssl.SSLError."""
        self._feed()
        try:
            self._connection.do_handshake()
        except self._again:
            raise ssl.SSLWantReadError from None
        except self._cut_off:
            raise ssl.SSLEOFError(8, "EOF occurred in violation of protocol") from None
        except self._error as error:
            found = _as_ssl_error(error)
            if found.reason != _PLAIN_HTTP:
                raise found from None
            self.plain_http = True
        finally:
            self._flush()

    def read(self, size: int, buffer: Any = None) -> Any:
        """Bytes that the client has sent, or their number if they are put into `buffer`; nothing at the end. Raises
        ssl.SSLError."""
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
        """Sends all of `data`. Raises ssl.SSLError."""
        view = memoryview(data)
        sent = 0
        try:
            while sent < len(view):
                sent += self._connection.send(view[sent : sent + _RECORD])
                self._flush(_RECORD + _OVERHEAD)
        except self._again:  # not without renegotiation, which there is none of
            raise ssl.SSLWantReadError from None
        except self._error as error:
            raise _as_ssl_error(error) from None
        return sent

    def unwrap(self) -> None:
        """Says goodbye, and waits for the client's. Raises ssl.SSLError."""
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
        """Bytes that may be read, at least: loops ask whether there are any."""
        return self._connection.pending() or int(self._has_fed)

    def getpeercert(self, binary_form: Any = False) -> Any:
        """The client's certificate (DER), None without one; its members are not told."""
        if self.plain_http or not binary_form:
            return None
        found = self._connection.get_peer_certificate(as_cryptography=True)
        return None if found is None else _der(found)

    def peer_chain(self) -> tuple[bytes, ...]:
        """What the client has sent with its certificate, as it came: nobody has looked at it."""
        found = self._connection.get_peer_cert_chain(as_cryptography=True) or ()
        return tuple(_der(each) for each in found)

    def selected_alpn_protocol(self) -> str | None:
        """What both sides have agreed on to speak."""
        return self._connection.get_alpn_proto_negotiated().decode() or None

    def cipher(self) -> tuple[str, str, int] | None:
        """The suite, its version and the bits of its secret."""
        name = self._connection.get_cipher_name()
        if name is None:
            return None
        return name, self._connection.get_cipher_version() or "", self._connection.get_cipher_bits() or 0

    def version(self) -> str | None:
        """The version of TLS."""
        return self._connection.get_protocol_version_name()

    def compression(self) -> None:
        """There is none."""

    def _feed(self) -> bool:
        """Gives OpenSSL some of what has come; whether there was anything."""
        data = self._incoming.read(_FED)
        if data:
            self._connection.bio_write(data)
            self._has_fed = True
            return True
        if self._incoming.eof:
            self._connection.bio_shutdown()
        return False

    def _flush(self, size: int = _RECORD) -> None:
        """Takes out what OpenSSL has to send: `size` bytes or less, or more in several pieces."""
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
