"""HTTP/2 (RFC 9113) client: many concurrent requests on one connection."""
