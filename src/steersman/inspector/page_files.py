"""The built files of the page (`make inspector` builds them), with their response headers."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

from steersman.net.message import Response

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
COMMON: Final = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)
"""Headers of every response that is the front's own."""
_INDEX: Final = "index.html"


def page_file(name: str) -> Response | None:
    """Return the response with a built file; "" is the page itself. None if there is no such file."""
    found = _files().get(name or _INDEX)
    if found is None:
        return None
    # names of assets contain a hash of their content
    caching = "private, max-age=31536000, immutable" if name.startswith("assets/") else "no-store"
    kind = _TYPES[(name or _INDEX).rpartition(".")[2]]
    return Response(200, [*COMMON, ("content-type", kind), ("cache-control", caching)], found)


@cache
def _files() -> dict[str, bytes]:
    """Return all files by name, "" excluded. They are some 400 KB, and loaded by the first request."""
    found: dict[str, bytes] = {}
    root = resources.files(__package__) / "page"
    for each in root.iterdir():
        if each.is_file() and each.name.rpartition(".")[2] in _TYPES:
            found[each.name] = each.read_bytes()
    assets = root / "assets"
    for each in assets.iterdir():
        if each.name.rpartition(".")[2] in _TYPES:
            found[f"assets/{each.name}"] = each.read_bytes()
    return found
