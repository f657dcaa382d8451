"""Names in proxy requests: `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`."""

from __future__ import annotations


def split_scheme_name_port(text: str) -> tuple[str, str, str] | None:
    """(scheme, name, port) with empty text for what is left out; None if `text` is no such name."""
    parts = text.split(":")
    if len(parts) > 3:
        return None
    scheme, name, port = ("", *parts, "")[:3] if len(parts) < 3 else parts
    if not name or scheme not in ("", "http", "https"):
        return None
    return scheme, name, port
