"""Header fields that are sent once or several times, with values of their grammar and beside it: what counts of them.

Every case is one request with some of the fields that servers read. Of both answers the status, the fields of the head
that follow from what was asked, and of a Status its reason and message must be alike.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from .server import Answer, Client

_CONFIGMAPS: Final = "/api/v1/namespaces/default/configmaps"
_BIG: Final = f"{_CONFIGMAPS}/header-fields"
_MEDIA: Final = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "*/*",
    "application/*",
    "text/plain",
    "",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;q=0.1",
    "application/yaml;q=0.5, */*;q=0.1",
)
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "Accept": _MEDIA,
    "Accept-Encoding": (
        "gzip",
        "identity",
        "gzip;q=0",
        "gzip;q=1",
        "gzip;q=0.5",
        "*",
        "GZIP",
        "deflate, gzip",
        "gzip;q=0, gzip",
        "gzip, gzip;q=0",
        "gzip;q=x",
        "gzip;q=0;x",
        ";q=1,gzip",
        "",
        "x-gzip",
        " gzip ",
    ),
    "Authorization": (
        "Bearer admin-token",
        "Bearer bob-token",
        "Bearer nobody",
        "Basic YTpi",
        "",
        "bearer admin-token",
        "Bearer",
        "Bearer  admin-token",
    ),
    "Impersonate-User": ("bob", "admin", "", "system:serviceaccount:default:a"),
    "Impersonate-Group": ("system:masters", "dev", ""),
    "Impersonate-Uid": ("1", "2"),
    "User-Agent": ("curl/8", "differential", "", "Mozilla/5.0"),
    "If-None-Match": ('"x"', "*", ""),
    "Range": ("bytes=0-9", "bytes=0-19", "bytes=3-5000", "x"),
    "Content-Type": (
        "application/json",
        "application/yaml",
        "text/plain",
        "",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/json; charset=utf-8",
        "application/json;a=1;a=2",
    ),
    "Origin": ("http://a", "null"),
    "Audit-ID": ("one", "two"),
    "Expect": ("100-continue", "other"),
    "Te": ("trailers", "gzip"),
}
_PATHS: Final = (
    *(_BIG,) * 4,
    _CONFIGMAPS,
    f"{_CONFIGMAPS}/none",
    "/openapi/v2",
    "/openapi/v3",
    "/apis",
    "/apis/apps",
    "/apis/apps/v1",
    "/version",
    "/api",
    "/api/v1/secrets?limit=1",
)
_FOLLOWING: Final = ("content-type", "content-encoding", "vary", "www-authenticate", "access-control-allow-origin")


@dataclass(frozen=True)
class Request:
    """One case."""

    method: str
    target: str
    fields: tuple[tuple[str, tuple[str, ...]], ...]
    body: str | None = None

    def __str__(self) -> str:
        sent = "; ".join(f"{name}: {each!r}" for name, values in self.fields for each in values)
        return f"{self.method} {self.target} with {sent}"


def case(random: Random) -> Request:
    """A request with one to three fields, most of which are there more than once."""
    method = random.choice(("GET", "GET", "GET", "GET", "POST", "PATCH"))
    names = random.sample(sorted(_FIELDS), random.choice((1, 1, 2, 3)))
    if method != "GET" and "Content-Type" not in names:
        names.append("Content-Type")
    fields = tuple((name, tuple(random.choices(_FIELDS[name], k=random.choice((1, 2, 2, 3))))) for name in names)
    if method == "GET":
        return Request(method, random.choice(_PATHS), fields)
    path = f"{_CONFIGMAPS if method == 'POST' else _BIG}?dryRun=All"
    return Request(method, path, fields, '{"metadata":{"name":"header-fields-new"}}')


def told(answer: Answer) -> dict[str, Any]:
    """Return the parts of an answer that must be equal."""
    found: dict[str, Any] = {name: answer.headers[name] for name in _FOLLOWING if name in answer.headers}
    if answer.headers.get("audit-id") in _FIELDS["Audit-ID"]:
        found["audit-id"] = answer.headers["audit-id"]
    body = answer.body
    if isinstance(body, dict):
        found |= {name: body.get(name) for name in ("kind", "reason", "message")}
    return {"code": answer.code, **found}


def run(a: Client, b: Client, options: argparse.Namespace) -> int:
    """Plays the cases; 1 if anything differs."""
    for client in (a, b):
        body = {"metadata": {"name": "header-fields"}, "data": {"a": "ab" * 100_000}}
        made = client.ask("POST", _CONFIGMAPS, body)
        if made.code not in (201, 409):
            raise RuntimeError(f"no ConfigMap could be made: {made}")
    began, different = time.monotonic(), 0
    numbers = range(options.cases) if options.case is None else [options.case]
    try:
        for number in numbers:
            request = case(Random(f"{options.seed}/header-fields/{number}"))
            lines = list(_differences(a, b, request))
            different += bool(lines)
            if lines and different <= options.show:
                print("\n".join([f"== {request}", *lines]), flush=True)
    finally:
        for client in (a, b):
            client.ask("DELETE", _BIG)
    print(
        f"header-fields: {len(numbers)} cases of seed {options.seed}, {different} differ, "
        f"{time.monotonic() - began:.0f} s",
        flush=True,
    )
    return 1 if different else 0


def _differences(a: Client, b: Client, request: Request) -> Iterator[str]:
    first, second = (
        told(each.ask(request.method, request.target, request.body, dict(request.fields))) for each in (a, b)
    )
    if first != second:
        yield f"      {json.dumps(first)[:500]}"
        yield f"      {json.dumps(second)[:500]}"
