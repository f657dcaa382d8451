"""Warning headers with handlers' messages to the client (WithWarningRecorder)."""

from __future__ import annotations

from steersman.endpoints.request import Request
from steersman.net.message import Response
from steersman.rest.context import MAX_LONG_WARNING_RUNES as _ITEM_RUNES
from steersman.rest.context import MAX_WARNING_RUNES as _TOTAL_RUNES
from steersman.work.patterns import late_pattern

_CONTROL = late_pattern("[\x00-\x1f\x7f-\x9f]")


def add_warnings(request: Request, response: Response) -> None:
    """Add each warning once as `Warning: 299 - "text"`; if they are long in all, each is truncated."""
    response.headers.extend(("warning", value) for value in warning_values(request.warnings))


def warning_values(texts: list[str]) -> list[str]:
    """Return the values of the Warning headers for `texts`, within upstream's limits (RFC 7234 section 5.5).

    Texts with control characters cannot be sent and are left out.
    """
    values: list[str] = []
    total = 0
    cut = False
    kept: list[str] = []
    for text in dict.fromkeys(texts):
        if not text:
            continue
        if cut and total >= _TOTAL_RUNES:
            break
        kept.append(text)
        text = text[:_ITEM_RUNES] if cut else text
        if _CONTROL.search(text):
            continue
        if not cut and total + len(text) > _TOTAL_RUNES:
            # truncates all texts from here on, and the earlier ones too
            cut = True
            short = [each[:_ITEM_RUNES] for each in kept if not _CONTROL.search(each[:_ITEM_RUNES])]
            values = list(map(_value, short))
            total = sum(map(len, short))
            continue
        total += len(text)
        values.append(_value(text))
    return values


def _value(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
