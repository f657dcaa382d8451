"""/flagz, /statusz and /debug/flags/v: the flags of the process, its state, and its log level."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from steersman.endpoints.negotiation import CONFIG_GROUP, TEXT, bounded, negotiate_page
from steersman.endpoints.request import Request
from steersman.endpoints.responses import NOSNIFF, TEXT_TYPE, error_response, plain_response, pretty_wanted
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.go_numbers import atoi
from steersman.machinery.errors.status import StatusError, bad_request, request_entity_too_large
from steersman.machinery.go.strings import to_lower
from steersman.net.log_levels import NOTICE
from steersman.net.message import BodyAborted, BodyTooLarge, Response
from steersman.server.server import Server
from steersman.server.slow_requests import SlowRequests
from steersman.server.version import GIT_VERSION, MAJOR, MINOR
from steersman.work.patterns import late_pattern

_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only.\n"
)
_NEWEST = "v1beta1"
_PAGE_VERSIONS = frozenset({"v1alpha1", _NEWEST})
_PATHS = frozenset({"/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"})
"""Paths that /statusz lists if they are served."""
_PLAIN = ("content-type", "text/plain")
_NO_TEXT = late_pattern(r"\\udc([89a-f][0-9a-f])")
_LONGEST = 3 << 20
"""Limit of a body in bytes, equal to that of objects."""
_FLAGS_PAGE = (
    b"<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n<table>\n"
    b"<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n"
)


def install_debug_paths(server: Server, flags: Mapping[str, str]) -> None:
    """Add the paths; `flags` are the command line's flags with their values. /debug/flags exists only with
    profiling.

    Slow requests are logged while the log's level shows them.
    """
    slow = SlowRequests(server.traces)
    server.add_path("/flagz", partial(_flagz, flags, server))
    server.add_path("/statusz", partial(_statusz, time.time(), server))
    if not server.config.profiling:
        return
    server.add_path("/debug/flags/v", partial(_verbosity, slow), listed=False)
    server.add_path("/debug/flags", _flags_page, listed=False)
    server.add_prefix("/debug/flags/", _flags_page)


def _page(server: Server, request: Request, kind: str, text: str, members: Mapping[str, Any]) -> Response:
    """Return a page as text, or as an object of its kind with these members, depending on the Accept header."""
    try:
        wanted = negotiate_page(
            bounded(request.headers.get("accept", "")), kind, _PAGE_VERSIONS, pretty=pretty_wanted(request)
        )
    except StatusError as error:
        return error_response(request, error)
    if wanted.media == TEXT:
        return Response(200, [TEXT_TYPE], f"\napiserver {to_lower(kind)}\n{_WARNING}{text}".encode())
    if wanted.as_version != _NEWEST:
        name = to_lower(kind)
        server.config.metrics.deprecated.set(1, (CONFIG_GROUP, wanted.as_version, name, "", ""))
        request.warnings.append(f"This version of the {name} endpoint is deprecated. Please use a newer version.")
    api_version = f"{CONFIG_GROUP}/{wanted.as_version}"
    page = {"kind": kind, "apiVersion": api_version, "metadata": {"name": "apiserver"}, **members}
    response = plain_response(page, wanted)
    media = f"{wanted.media};g={CONFIG_GROUP};v={wanted.as_version};as={kind}"
    return Response(200, [("content-type", media)], response.body)


async def _flagz(flags: Mapping[str, str], server: Server, request: Request) -> Response:
    in_order = dict(sorted(flags.items()))
    text = "".join(f"{name}:{value}\n" for name, value in in_order.items())
    return _page(server, request, "Flagz", text, {"flags": in_order})


async def _statusz(started: float, server: Server, request: Request) -> Response:
    up = int(time.time() - started)
    begun = time.gmtime(started)
    binary, emulated = GIT_VERSION.removeprefix("v"), f"{MAJOR}.{MINOR}"
    paths = [path for path in server.all_paths() if path in _PATHS]
    text = (
        f"\nStarted= {time.strftime('%a %b %d %H:%M:%S UTC %Y', begun)}\n"
        f"Up= {up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec\n"
        f"Binary version= {binary}\nEmulation version= {emulated}\nPaths= {' '.join(paths)}\n"
    )
    return _page(
        server,
        request,
        "Statusz",
        text,
        {
            "startTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", begun),
            "uptimeSeconds": up,
            "goVersion": "",
            "binaryVersion": binary,
            "emulationVersion": emulated,
            "paths": paths,
        },
    )


async def _verbosity(slow: SlowRequests, request: Request) -> Response:
    """Set the log level to the number in the body of a PUT, as -v does at the start."""
    if request.method != "PUT":
        return Response(406, [_PLAIN, NOSNIFF], b"unsupported http method\n")
    try:
        data = await request.http.body.read(_LONGEST)
    except BodyTooLarge:
        return error_response(request, request_entity_too_large(f"Request entity too large: limit is {_LONGEST}"))
    except BodyAborted as error:
        return error_response(request, bad_request(f"unable to read the request body: {error}"))
    try:
        verbosity = _parse_verbosity(data)
    except ValueError as error:
        return Response(400, [_PLAIN, NOSNIFF], f"{error}\n".encode())
    logging.getLogger().setLevel(log_level(verbosity))
    slow.follow_level()
    return Response(200, [_PLAIN, NOSNIFF], b"successfully set klog.logging.verbosity to " + data + b"\n")


def _parse_verbosity(data: bytes) -> int:
    """Return the level in the body: an unsigned number to the handler, then a signed one to klog. Raises ValueError."""
    if not data.isdigit():  # bytes.isdigit() accepts only ASCII digits
        raise ValueError(f"strconv.ParseUint: parsing {_quote_bytes(data)}: invalid syntax")
    text = data.decode("ascii")
    number = atoi(text)
    if number >= 1 << 32:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    if number >= 1 << 31:
        fault = f"strconv.ParseInt: parsing {quote(text)}: value out of range"
        raise ValueError(f"failed set klog.logging.verbosity {text}: {fault}")
    return number


def _quote_bytes(data: bytes) -> str:
    """Return bytes, which may be invalid UTF-8, as strconv.Quote prints them."""
    return _NO_TEXT.sub(r"\\x\1", quote(data.decode("utf-8", "surrogateescape")))


async def _flags_page(request: Request) -> Response:
    """Answer with the page of changeable flags."""
    return Response(200, [("content-type", "text/html; charset=utf-8")], _FLAGS_PAGE)


def log_level(verbosity: int) -> int:
    """Return the level of Python's logging for a -v."""
    if verbosity >= 6:
        return logging.DEBUG
    return logging.INFO if verbosity >= 2 else NOTICE
