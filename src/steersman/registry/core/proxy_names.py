"""Names in proxy requests, `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`, and the path after them."""

from __future__ import annotations

from steersman.machinery.errors.status import service_unavailable
from steersman.net.ascii import is_digits


def split_scheme_name_port(text: str) -> tuple[str, str, str] | None:
    """Return (scheme, name, port), with "" for omitted parts; None if `text` has another form."""
    parts = text.split(":")
    if len(parts) > 3:
        return None
    scheme, name, port = ("", *parts, "")[:3] if len(parts) < 3 else parts
    if not name or scheme not in ("", "http", "https"):
        return None
    return scheme, name, port


def proxied_port(text: str) -> int:
    """Parse a port from a client. Raises StatusError 503 if it is no port."""
    if not (is_digits(text) and len(text) <= 5 and int(text) <= 65535):
        raise service_unavailable(f"error trying to reach service: dial tcp: address {text}: invalid port")
    return int(text)


def proxied_path(path: str) -> str:
    """Return the path after the subresource as it is sent to the backend."""
    return f"/{path}" if path and not path.startswith("/") else path
