"""HTTP/1.1 server side and shared parsing (RFC 9112)."""
