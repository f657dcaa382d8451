"""WebSockets (RFC 6455) on connections taken over from HTTP/1.1."""
