"""Conformance of the server's HTTP/2: see __main__.py."""
