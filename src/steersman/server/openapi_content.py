"""Serves bytes with HTTP's conditional and range requests (RFC 9110 sections 13 and 14), as Go's http.ServeContent."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Final

from steersman.endpoints.request import Request
from steersman.endpoints.responses import NOSNIFF, TEXT_TYPE
from steersman.net.message import Response

_RANGE: Final = re.compile(r"bytes=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*")


def serve_content(
    request: Request, headers: list[tuple[str, str]], data: bytes, modified: datetime, etag: str = ""
) -> Response:
    """`data` with `headers`, or what the request's conditions call for instead: 304, 412, 206, 416.

    `modified` is in UTC, in whole seconds. `etag` is quoted; "" is none. A request for several ranges gets everything.
    """
    tagged = [*headers, ("etag", etag)] if etag else headers
    status = _condition(request, modified, etag)
    if status == 304:
        kept = [header for header in tagged if header[0] != "content-type"]
        return Response(304, kept if etag else [*kept, ("last-modified", format_datetime(modified, usegmt=True))])
    if status == 412:
        return Response(412, tagged)
    full = [*tagged, ("accept-ranges", "bytes"), ("last-modified", format_datetime(modified, usegmt=True))]
    wanted = _RANGE.fullmatch(request.headers.get("range", ""))
    if wanted is None or request.method not in ("GET", "HEAD") or not _range_applies(request, modified, etag):
        return Response(200, full, data)
    span = _span(wanted[1], wanted[2], len(data))
    if span is None:
        kept = [header for header in headers if header[0] not in ("content-type", "cache-control")]
        refused = [*kept, TEXT_TYPE, NOSNIFF, ("content-range", f"bytes */{len(data)}")]
        return Response(416, refused, b"invalid range: failed to overlap\n")
    first, end = span
    return Response(206, [*full, ("content-range", f"bytes {first}-{end - 1}/{len(data)}")], data[first:end])


def _condition(request: Request, modified: datetime, etag: str) -> int:
    """304 or 412 if a precondition says so, else 200."""
    headers = request.headers
    reading = request.method in ("GET", "HEAD")
    if "if-match" in headers:
        if not _matches(headers["if-match"], etag):
            return 412
    elif (since := _date(headers.get("if-unmodified-since"))) is not None and modified > since:
        return 412
    if "if-none-match" in headers:
        if _matches(headers["if-none-match"], etag):
            return 304 if reading else 412
    elif reading and (since := _date(headers.get("if-modified-since"))) is not None and modified <= since:
        return 304
    return 200


def _matches(header: str, etag: str) -> bool:
    """Whether a list of entity tags, or "*", has this one."""
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return tags == ["*"] or (bool(etag) and etag in tags)


def _date(value: str | None) -> datetime | None:
    if not value:
        return None
    try:
        parsed = parsedate_to_datetime(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _range_applies(request: Request, modified: datetime, etag: str) -> bool:
    """Whether If-Range, where there is one, names this very content."""
    condition = request.headers.get("if-range")
    return condition is None or (bool(etag) and condition == etag) or _date(condition) == modified


def _span(first: str, last: str, size: int) -> tuple[int, int] | None:
    """Start and end of a range within `size` bytes; None if it lies outside."""
    if not first:
        return (max(0, size - int(last)), size) if last and int(last) else None
    start = int(first)
    end = min(int(last) + 1, size) if last else size
    return (start, end) if start < size and start < end else None
