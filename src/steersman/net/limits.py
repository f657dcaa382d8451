"""What a client may ask of one server: sizes, counts and waits."""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds of a server: sizes in bytes, times in seconds. The defaults follow Go's net/http and kube-apiserver."""

    max_connections: int = 0
    """Open connections; 0 is no bound. One too many is closed at once."""
    max_header_bytes: int = (1 << 20) + 4096
    """The head of one HTTP/1.1 request: Go's DefaultMaxHeaderBytes and the buffer it reads with."""
    max_header_list_bytes: int = (1 << 20) + 320
    """The decoded fields of one HTTP/2 request, 32 more for each: SETTINGS_MAX_HEADER_LIST_SIZE, as Go sets it."""
    max_header_count: int = 1000
    """Header fields of one request."""
    header_timeout: float = 32.0
    """From the first byte of a request, or the start of a connection, to the end of the head; TLS handshakes too."""
    idle_timeout: float = 90.0
    """A connection without a request is closed after this time."""
    max_streams: int = 100
    """HTTP/2 requests open at once on one connection."""
    stream_window: int = 1 << 20
    """Body bytes buffered for one request that its handler has not read; the HTTP/2 receive window."""
    first_window: int = 64 << 10
    """The same over HTTP/2 until the handler waits for more: those who do not read yet keep little of the window of
    the connection, which those who do need."""
    connection_window: int = 16 << 20
    """The same over all requests of one HTTP/2 connection."""
    max_discard: int = 256 << 10
    """Body bytes read and thrown away to keep an HTTP/1.1 connection, when the handler did not read them."""
    write_high_water: int = 64 << 10
    """Bytes handed to the transport before writers must wait; a quarter of them while a stream is sent. They are this
    connection's own, and lie there as often as connections are not read; what waits before that is shared, as events of
    watches are. Below TLS the loop keeps up to 64 KiB and one record more."""
    send_timeout: float = 60.0
    """How long an answer may take to leave once it is complete; upstream's requests end after as long."""
    max_unsent: int = 16 << 20
    """Bytes of complete answers that may wait on one HTTP/2 connection; then no further request of it is begun."""
    max_unsent_free: int = 1 << 20
    """The same of answers whose end nobody waits for (`Request.when_over`): nothing else bounds these."""
    linger: float = 1.0
    """How long a closing connection still reads, so that the client sees the last answer before the close."""
    tls_shutdown_timeout: float = 1.0
    """How long a closing connection waits for the client's close_notify."""
