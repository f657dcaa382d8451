"""HTTP/2 server side and shared framing (RFC 9113)."""
