"""Limits of a server towards its clients: sizes, counts and waits."""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of a server: sizes in bytes, times in seconds. The defaults follow Go's net/http and kube-apiserver."""

    max_connections: int = 0
    """Open connections; 0 is no limit. Further connections are closed at once."""
    max_header_bytes: int = (1 << 20) + 4096
    """Bytes of an HTTP/1.1 head: Go's DefaultMaxHeaderBytes and its read buffer."""
    max_header_list_bytes: int = (1 << 20) + 320
    """Size of an HTTP/2 request's fields, with 32 bytes per field: SETTINGS_MAX_HEADER_LIST_SIZE, as Go sets it."""
    max_header_count: int = 1000
    """Header fields of one request."""
    header_timeout: float = 32.0
    """Seconds from the first byte of a request, or the start of a connection, to the end of the head; also of a
    handshake.
    """
    idle_timeout: float = 90.0
    """Seconds after which a connection without a request is closed."""
    max_streams: int = 100
    """Concurrent HTTP/2 requests on one connection."""
    stream_window: int = 1 << 20
    """Unread bytes of body buffered for one request; the receive window of an HTTP/2 stream."""
    first_window: int = 64 << 10
    """Receive window of an HTTP/2 stream until its handler waits for more. Requests that do not read yet thus occupy
    little of the connection's window, which the reading ones need.
    """
    connection_window: int = 16 << 20
    """Unread bytes of body buffered for all requests of one HTTP/2 connection."""
    max_discard: int = 256 << 10
    """Bytes of a body that are read and discarded, if the handler did not read them, to keep an HTTP/1.1 connection."""
    write_high_water: int = 64 << 10
    """Bytes in the transport's buffer above which writers wait; a quarter of them while a stream is sent. These bytes
    are the connection's own and stay in memory as long as the client does not read; bytes waiting elsewhere are shared
    between connections, as events of watches are. Below TLS the event loop buffers up to 64 KiB and one record more.
    """
    send_timeout: float = 60.0
    """Seconds allowed for sending a complete answer; upstream limits requests to the same time."""
    max_unsent: int = 16 << 20
    """Bytes of complete answers that may wait on one HTTP/2 connection before no further request of it is started."""
    max_unsent_free: int = 1 << 20
    """Bytes of complete answers that may wait on one HTTP/2 connection, counting only answers without
    `Request.on_request_end`, which nothing else bounds.
    """
    linger: float = 1.0
    """Seconds for which a closing connection still reads, so that the client sees the last answer before the close."""
    tls_shutdown_timeout: float = 1.0
    """Seconds for which a closing connection waits for the client's close_notify."""
