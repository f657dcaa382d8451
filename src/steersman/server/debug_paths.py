"""/flagz, /statusz and /debug/flags/v: what the server was told, how it is, and how much it logs."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial

from steersman.endpoints.request import Request
from steersman.endpoints.responses import NOSNIFF, TEXT_TYPE, error_response
from steersman.machinery.errors import not_acceptable
from steersman.machinery.field import quote
from steersman.net.message import Response
from steersman.server.server import Server
from steersman.server.version import GIT_VERSION, MAJOR, MINOR

_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only.\n"
)
_PLAIN = ("content-type", "text/plain")
_LONGEST = 64


def install_debug_paths(server: Server, flags: Mapping[str, str]) -> None:
    """Adds the paths; `flags` are the command line's flags with their values."""
    server.add_path("/flagz", partial(_flagz, flags))
    server.add_path("/statusz", partial(_statusz, time.time()))
    server.add_path("/debug/flags/v", _verbosity)


def _refused(request: Request) -> Response | None:
    """406 unless the client takes plain text."""
    accepted = request.headers.get("accept", "*/*").split(",")
    if any(each.partition(";")[0].strip() in ("text/plain", "text/*", "*/*") for each in accepted):
        return None
    return error_response(request, not_acceptable("only the following media types are accepted: text/plain"))


async def _flagz(flags: Mapping[str, str], request: Request) -> Response:
    lines = "".join(f"{name}:{value}\n" for name, value in sorted(flags.items()))
    text = f"\napiserver flagz\n{_WARNING}{lines}"
    return _refused(request) or Response(200, [TEXT_TYPE], text.encode())


async def _statusz(started: float, request: Request) -> Response:
    up = int(time.time() - started)
    begun = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(started))
    text = (
        f"\napiserver statusz\n{_WARNING}\nStarted= {begun}\n"
        f"Up= {up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec\n"
        f"Binary version= {GIT_VERSION}\nEmulation version= {MAJOR}.{MINOR}\n"
    )
    return _refused(request) or Response(200, [TEXT_TYPE], text.encode())


async def _verbosity(request: Request) -> Response:
    """PUT of a number sets how much is logged, as -v does at the start."""
    if request.method != "PUT":
        return Response(406, [_PLAIN, NOSNIFF], b"unsupported http method\n")
    text = (await request.http.body.read(_LONGEST)).decode("utf-8", "replace")
    if not (text.isascii() and text.isdigit()):
        message = f"strconv.ParseUint: parsing {quote(text)}: invalid syntax\n"
        return Response(400, [_PLAIN, NOSNIFF], message.encode())
    logging.getLogger().setLevel(log_level(int(text)))
    return Response(200, [_PLAIN, NOSNIFF], f"successfully set klog.logging.verbosity to {text}\n".encode())


def log_level(verbosity: int) -> int:
    """The level of Python's logging for a -v."""
    if verbosity >= 6:
        return logging.DEBUG
    return logging.INFO if verbosity >= 2 else logging.WARNING
