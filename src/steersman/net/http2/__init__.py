"""HTTP/2 (RFC 9113)."""
