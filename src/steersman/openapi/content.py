"""HTTP responses with conditional and range requests (RFC 9110 sections 13 and 14), as Go's http.ServeContent."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final

from steersman.endpoints.request import Request
from steersman.endpoints.responses import NOSNIFF, TEXT_TYPE
from steersman.machinery.errors.go_numbers import parse_int
from steersman.machinery.go.strings import trim_space
from steersman.net.ascii import SPACE, lower
from steersman.net.message import Response
from steersman.work.patterns import late_pattern


def serve_content(
    request: Request,
    headers: list[tuple[str, str]],
    data: bytes,
    modified: datetime,
    etag: str = "",
    changed: datetime | None = None,
) -> Response:
    """Return a response with `data` and `headers`, or 304, 412, 206 or 416 if the request's conditions demand it.

    `modified` is in UTC, in whole seconds. `etag` is quoted; "" means none. A request for several ranges gets all of
    `data`.

    `changed` is for content whose modification time is always the present: it is the second of its last real change. A
    client may have got the older content within that second. Unlike ServeContent, it is then not told that its copy is
    still valid.
    """
    tagged = [*headers, ("etag", etag)] if etag else headers
    status = _condition(request, modified, etag, changed)
    if status == 304:
        kept = [header for header in tagged if header[0] != "content-type"]
        return Response(304, kept if etag else [*kept, ("last-modified", format_datetime(modified, usegmt=True))])
    if status == 412:
        return Response(412, tagged)
    full = [*tagged, ("accept-ranges", "bytes"), ("last-modified", format_datetime(modified, usegmt=True))]
    asked = request.headers.get("range", "")
    if not asked or request.method not in ("GET", "HEAD") or not _range_applies(request, modified, etag):
        return Response(200, full, data)
    try:
        spans = _spans(asked, len(data))
    except _RangeError as error:
        kept = [header for header in headers if header[0] not in ("content-type", "cache-control")]
        if error.beyond:
            kept.append(("content-range", f"bytes */{len(data)}"))
        return Response(416, [*kept, TEXT_TYPE, NOSNIFF], f"{error}\n".encode())
    if len(spans) != 1:
        return Response(200, full, data)
    first, end = spans[0]
    return Response(206, [*full, ("content-range", f"bytes {first}-{end - 1}/{len(data)}")], data[first:end])


def _condition(request: Request, modified: datetime, etag: str, changed: datetime | None) -> int:
    """Return 304 or 412 if a precondition demands it, else 200."""
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
        return 304 if changed is None or changed < since else 200
    return 200


_MOST_TAGS: Final = 1000
"""The most entity tags of a header that are examined."""


def _matches(header: str, etag: str) -> bool:
    """Return True if a list of entity tags contains this one, or is "*"."""
    tags = [trim_space(tag).removeprefix("W/") for tag in header.split(",", _MOST_TAGS)[:_MOST_TAGS]]
    return tags == ["*"] or (bool(etag) and etag in tags)


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK: Final = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:[.,][0-9]{1,9})?"
_DATES: Final = tuple(
    late_pattern(form, re.ASCII)
    for form in (
        rf"[A-Za-z]{{3}}, (?P<day>[0-9]{{2}}) (?P<month>[A-Za-z]{{3}}) (?P<year>[0-9]{{4}}) {_CLOCK} GMT",
        rf"[A-Za-z]{{6,9}}, (?P<day>[0-9]{{2}})-(?P<month>[A-Za-z]{{3}})-(?P<year>[0-9]{{2}}) {_CLOCK} [A-Z]{{3,4}}",
        rf"[A-Za-z]{{3}} (?P<month>[A-Za-z]{{3}}) (?P<day> ?[0-9]{{1,2}}) {_CLOCK} (?P<year>[0-9]{{4}})",
    )
)
"""HTTP's forms of a date (RFC 9110 section 5.6.7), in the order in which Go's http.ParseTime tries them."""
_LONGEST_DATE: Final = 64
_CENTURY: Final = 69
"""The first two-digit year that belongs to the last century."""


def _date(value: str | None) -> datetime | None:
    """Parse an HTTP date; None for other text, which counts as a missing header."""
    if not value or len(value) > _LONGEST_DATE:
        return None
    found = next((match for form in _DATES if (match := form.fullmatch(value)) is not None), None)
    if found is None or (month := lower(found["month"])) not in _MONTHS:
        return None
    year = int(found["year"])
    if len(found["year"]) == 2:
        year += 1900 if year >= _CENTURY else 2000
    hour, minute, second = (int(found[each]) for each in ("hour", "minute", "second"))
    try:
        return datetime(year, _MONTHS.index(month) + 1, int(found["day"]), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def _range_applies(request: Request, modified: datetime, etag: str) -> bool:
    """Return True if there is no If-Range header, or it names the present content."""
    condition = request.headers.get("if-range")
    return condition is None or (bool(etag) and condition == etag) or _date(condition) == modified


_MOST_RANGES: Final = 1000


class _RangeError(Exception):
    """The error of a Range header that cannot be satisfied; `beyond` is True if it is well-formed."""

    def __init__(self, text: str, *, beyond: bool = False) -> None:
        super().__init__(text)
        self.beyond = beyond


def _spans(asked: str, size: int) -> list[tuple[int, int]]:
    """Return start and end of each range within `size` bytes, as Go's net/http parses them. Raises _RangeError.

    A header with excessively many ranges is not parsed: two full ranges stand for it, as several ranges get all data.
    """
    unit, equals, rest = asked.partition("=")
    if unit != "bytes" or not equals:
        raise _RangeError("invalid range")
    if rest.count(",") > _MOST_RANGES:
        return [(0, size)] * 2
    spans, beyond = [], False
    for each in rest.split(","):
        text = each.strip(SPACE)
        if not text:
            continue
        first, dash, last = (part.strip(SPACE) for part in text.partition("-"))
        if not dash:
            raise _RangeError("invalid range")
        if not first:
            spans.append((max(0, size - _offset(last)), size))
        elif (start := _offset(first)) >= size:
            beyond = True
        elif last and _offset(last) < start:
            raise _RangeError("invalid range")
        else:
            spans.append((start, min(_offset(last) + 1, size) if last else size))
    if beyond and not spans:
        raise _RangeError("invalid range: failed to overlap", beyond=True)
    return spans


def _offset(text: str) -> int:
    try:
        offset = parse_int(text)
    except ValueError:
        offset = -1
    if offset < 0 or text[0] == "-":
        raise _RangeError("invalid range")
    return offset
