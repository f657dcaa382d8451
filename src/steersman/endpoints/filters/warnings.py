"""Turns what handlers want to tell the client into Warning headers (WithWarningRecorder)."""

from __future__ import annotations

from steersman.endpoints.request import Handler, Request
from steersman.net.message import Response

_TOTAL_RUNES = 4096
_ITEM_RUNES = 256


async def with_warnings(request: Request, next_: Handler) -> Response:
    """Sends each text once as `Warning: 299 - "text"`; when they are long in all, each is cut short."""
    response = await next_(request)
    if request.warnings:
        response.headers.extend(("warning", value) for value in warning_values(request.warnings))
    return response


def warning_values(texts: list[str]) -> list[str]:
    """The values of the Warning headers for `texts`, within upstream's bounds (RFC 7234 section 5.5)."""
    unique = list(dict.fromkeys(texts))
    if sum(map(len, unique)) > _TOTAL_RUNES:
        unique = list(dict.fromkeys(text[:_ITEM_RUNES] for text in unique))
    values = []
    total = 0
    for text in unique:
        total += len(text)
        if total > _TOTAL_RUNES:
            break
        clean = "".join(char if char.isprintable() else " " for char in text)
        escaped = clean.replace("\\", "\\\\").replace('"', '\\"')
        values.append(f'299 - "{escaped}"')
    return values
