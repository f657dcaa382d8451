"""HTTP/2 (RFC 9113) as a client speaks it: many requests at once over one connection."""
