"""/debug/clock: the clock of a cluster. GET returns its state, POST changes it.

Authorized as other non-resource paths.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from steersman.cluster.clock import ClusterClock, OutOfRange
from steersman.endpoints.request import Request
from steersman.endpoints.responses import JSON_TYPE, error_response, method_not_allowed
from steersman.machinery.errors.status import bad_request, request_entity_too_large
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.net.message import BodyAborted, BodyTooLarge, Response
from steersman.server.server import Server

PATH: Final = "/debug/clock"
_LONGEST: Final = 1024
"""Bytes of a request's body."""
_NANO: Final = 10**9


class ClockChange(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Change of the clock; both at once are a leap that ends at the new speed."""

    speed: float | None = None
    """Simulated seconds in a real one: 0 stops the clock, 1 is the real speed."""
    advance: str | None = None
    """Duration of a leap, as Go writes it: `2h`."""


def install_clock_paths(server: Server, clock: ClusterClock) -> None:
    """Add the path, which the index does not list."""
    server.add_path(PATH, partial(_answer, clock), listed=False)


async def _answer(clock: ClusterClock, request: Request) -> Response:
    if request.method == "POST":
        try:
            data = await request.http.body.read(_LONGEST)
            _change(clock, msgspec.json.decode(data, type=ClockChange))
        except BodyTooLarge:
            return error_response(request, request_entity_too_large(f"Request entity too large: limit is {_LONGEST}"))
        except BodyAborted as error:
            return error_response(request, bad_request(f"unable to read the request body: {error}"))
        except msgspec.DecodeError:
            fields = ", ".join(ClockChange.__struct_encode_fields__)
            return error_response(request, bad_request(f"the body is no JSON object with the members {fields}"))
        except (DurationError, OutOfRange) as error:
            return error_response(request, bad_request(str(error)))
    elif request.method not in ("GET", "HEAD"):
        return error_response(request, method_not_allowed())
    return Response(200, [JSON_TYPE], msgspec.json.encode(clock.state) + b"\n")


def _change(clock: ClusterClock, change: ClockChange) -> None:
    """Change the clock. Raises DurationError, OutOfRange, without a change."""
    seconds = None if change.advance is None else parse_duration(change.advance) / _NANO
    clock.change(change.speed, seconds)
