"""Requests and their steps as lines of text."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Required, TypedDict

from steersman.cli.terminal_text import coloured, printable
from steersman.client.client import checked
from steersman.machinery.go.strings import to_lower

_RED: Final = "31"
_YELLOW: Final = "33"
_BAR: Final = 24
"""Columns of the bar of a step."""
_NAMES: Final = 44
"""Most columns of the names of steps."""
_SLOW: Final = 500.0
"""Milliseconds from which a request is shown as slow."""
_AGENT: Final = 40


class _Event(TypedDict, total=False):
    name: Required[str]
    at: Required[float]
    attributes: dict[str, Any]


class _Step(TypedDict, total=False):
    name: Required[str]
    start: Required[float]
    milliseconds: Required[float]
    attributes: dict[str, Any]
    events: list[_Event]
    steps: list[_Step]


class _Request(TypedDict):
    """The members of a request that are shown, as /debug/requests serves them."""

    id: str
    time: str
    milliseconds: float
    verb: str
    method: str
    path: str
    apiGroup: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user: str
    userAgent: str
    sourceIP: str
    code: int
    bytes: int | None


class _RequestWithSteps(_Request):
    dropped: int
    steps: list[_Step]


class _Dropped(TypedDict):
    dropped: int


class _Requests(TypedDict):
    requests: list[dict[str, Any]]


def checked_request(plain: Any) -> Mapping[str, Any]:
    """Return a line of the stream of requests. Raises Undecodable for data of another shape."""
    return checked(plain, _Dropped if _is_dropped(plain) else _Request)  # type: ignore[no-any-return]


def checked_requests(plain: Any) -> Sequence[Mapping[str, Any]]:
    """Return the requests of an answer. Raises Undecodable for data of another shape."""
    return [checked_request(each) for each in checked(plain, _Requests)["requests"]]


def checked_steps(plain: Any) -> Mapping[str, Any]:
    """Return one request with its steps. Raises Undecodable for data of another shape."""
    return checked(plain, _RequestWithSteps)  # type: ignore[no-any-return]


def _is_dropped(found: Any) -> bool:
    return isinstance(found, Mapping) and "dropped" in found and "verb" not in found


def request_line(found: Mapping[str, Any], *, wide: bool) -> str:
    """Return a line about a request: time, code, duration, verb, object, user, bytes, client and the end of its id."""
    if _is_dropped(found):
        return coloured(f"{found['dropped']} requests are left out: this reader was too slow", _YELLOW)
    agent = str(found["userAgent"])
    columns = [
        _time(str(found["time"])),
        _code(int(found["code"])),
        _duration(float(found["milliseconds"]), 10),
        f"{printable(found['verb']):<7}",
        f"{printable(_object(found)):<40}",
        f"{printable(found['user'] or '-'):<32}",
        f"{_size(found['bytes']):>9}",
        printable(agent if wide else agent.partition(" ")[0], 200 if wide else _AGENT),
        printable(found["id"] if wide else found["id"][-8:]),
    ]
    if wide:
        columns += [printable(found["sourceIP"]), printable(found["path"])]
    return "  ".join(columns).rstrip(" ")


def step_lines(found: Mapping[str, Any], *, wide: bool) -> Iterator[str]:
    """Yield the lines of one request: facts, then each step with its duration, a bar and its attributes."""
    yield (
        f"{printable(found['verb'])} {printable(_object(found))} by {printable(found['user'] or 'nobody')}: "
        f"{found['code']} after {_duration(float(found['milliseconds']))}, {_size(found['bytes'])}"
    )
    yield f"{printable(found['method'])} {printable(found['path'])}"
    yield f"{printable(found['time'])}  {printable(found['id'])}  {printable(found['userAgent'])}"
    yield ""
    rows = list(_rows(found["steps"], 0, events=wide))
    width = min(max((len(name) for name, _ in rows), default=0), _NAMES)
    total = float(found["milliseconds"]) or 1.0
    for name, row in rows:
        if "at" in row:
            line = f"{name[:_NAMES]:<{width}}  {'at':>2} {float(row['at']):.2f} ms"
        else:
            milliseconds = float(row["milliseconds"])
            line = f"{name[:_NAMES]:<{width}}  {_duration(milliseconds, 10)}  {_bar(float(row['start']), milliseconds, total)}"
        yield f"{line}  {_attributes(row.get('attributes', {}), width + 42, wide=wide)}".rstrip(" ")
    if found["dropped"]:
        yield coloured(f"{found['dropped']} more steps were not recorded", _YELLOW)


def _rows(steps: Sequence[Mapping[str, Any]], depth: int, *, events: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the indented names of steps, and with `events` of their events, each with its data."""
    for step in steps:
        yield "  " * depth + printable(step["name"], 200), step
        for event in step.get("events", ()) if events else ():
            yield f"{'  ' * depth}  * {printable(event['name'], 200)}", event
        yield from _rows(step.get("steps", ()), depth + 1, events=events)


def _attributes(found: Mapping[str, Any], used: int, *, wide: bool) -> str:
    """Return attributes; without `wide` in what is left of a line of which `used` columns are used, and without those
    that the head shows.
    """
    shown = {name: value for name, value in found.items() if value not in ("", None)}
    if not wide:
        shown = {name: value for name, value in shown.items() if name not in _IN_HEAD}
    text = " ".join(f"{printable(name)}={printable(value, 300)}" for name, value in shown.items())
    room = max(shutil.get_terminal_size((120, 24)).columns - used, 40)
    return text if wide or len(text) <= room else f"{text[: room - 3]}..."


_IN_HEAD: Final = frozenset(
    {
        "accept",
        "api-group",
        "api-version",
        "audit-id",
        "client",
        "encoder",
        "method",
        "name",
        "namespace",
        "protocol",
        "resource",
        "scope",
        "subresource",
        "url",
        "user-agent",
        "verb",
        "writer",
    }
)
"""Attributes that repeat the facts about the request."""


def _bar(start: float, milliseconds: float, total: float) -> str:
    block = "█" if to_lower(sys.stdout.encoding or "").startswith("utf") else "#"
    first = int(min(max(start / total, 0.0) * _BAR, _BAR - 1))
    length = round(min(max(milliseconds / total * _BAR, 1), _BAR - first))
    return f"|{' ' * first}{block * length}{' ' * (_BAR - first - length)}|"


def _object(found: Mapping[str, Any]) -> str:
    """Return the resource with namespace and name, or the path of a request that is not about a resource."""
    if not found["resource"]:
        return str(found["path"])
    resource = str(found["resource"]) + (f".{found['apiGroup']}" if found["apiGroup"] else "")
    resource += f"/{found['subresource']}" if found["subresource"] else ""
    where = f"{found['namespace']}/" if found["namespace"] else ""
    return f"{resource} {where}{found['name']}".rstrip(" ")


def _time(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%H:%M:%S.%f")[:12]
    except (ValueError, OverflowError):
        return f"{printable(text, 9):<12}"


def _code(code: int) -> str:
    return coloured(str(code), _RED if code >= 500 else _YELLOW if code >= 400 else "")


def _duration(milliseconds: float, width: int = 0) -> str:
    text = f"{milliseconds / 1000:.2f} s" if milliseconds >= 10_000 else f"{milliseconds:.2f} ms"
    return coloured(f"{text:>{width}}", _YELLOW if milliseconds >= _SLOW else "")


def _size(size: int | None) -> str:
    if size is None:
        return "-"
    return f"{size} B" if size < 10_000 else f"{size / 1024:.0f} KiB"
