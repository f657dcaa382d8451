"""HTTP/1.1 and HTTP/2 over TLS on asyncio, and the same without a socket. Knows nothing of Kubernetes."""
