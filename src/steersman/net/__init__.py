"""HTTP/1.1 and HTTP/2 over TLS on asyncio, over sockets or in memory. Independent of Kubernetes."""
