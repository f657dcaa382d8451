"""/debug/api_priority_and_fairness/: waiting and executing requests."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from steersman.endpoints.request import Request
from steersman.endpoints.responses import TEXT_TYPE
from steersman.flowcontrol.dumps import (
    RequestDescription,
    Row,
    collect_rows,
    level_rows,
    queue_rows,
    request_rows,
    table,
)
from steersman.flowcontrol.fairness import Fairness
from steersman.machinery.values.times import monotonic
from steersman.net.message import Response
from steersman.server.server import PathHandler, Server
from steersman.work.offloading import offload_if

_ROOT: Final = "/debug/api_priority_and_fairness"
_FEW: Final = 200
"""Lines up to which a dump is formatted on the event loop."""
_NEVER: Final = "0001-01-01T00:00:00Z"


def install_fairness_paths(server: Server, fairness: Fairness) -> None:
    """Add the three paths, which the index does not list. Raises ValueError if a path is collect_rows."""

    async def levels(request: Request) -> Response:
        return await _dump(level_rows(fairness))

    async def queues(request: Request) -> Response:
        return await _dump(queue_rows(fairness))

    async def requests(request: Request) -> Response:
        with_details = bool(request.query.get("includeRequestDetails"))
        return await _dump(request_rows(fairness, _described, _as_time, with_details=with_details))

    handlers: dict[str, PathHandler] = {"priority_levels": levels, "queues": queues, "requests": requests}
    for page, handler in handlers.items():
        server.add_path(f"{_ROOT}/dump_{page}", handler, listed=False)


async def _dump(rows: Iterable[Row]) -> Response:
    found = await collect_rows(rows)
    text = table(found) if len(found) <= _FEW else await offload_if(True, table, found)
    return Response(200, [TEXT_TYPE], text.encode("utf-8", "surrogateescape"))


def _described(request: Request) -> RequestDescription:
    info, flow = request.info, request.flow
    assert flow is not None
    action = info.authorized_action
    version = f"{action.group}/{action.version}" if action.group else action.version
    return RequestDescription(
        flow,
        (
            request.user.name,
            action.verb,
            info.path,
            action.namespace,
            action.name,
            version,
            action.resource,
            action.subresource,
        ),
    )


def _as_time(moment: float) -> str:
    """Return a time of the monotonic clock in UTC, in RFC 3339 with a fraction without trailing zeros."""
    if moment < 0:
        return _NEVER
    text = datetime.fromtimestamp(time.time() - monotonic() + moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return f"{text.rstrip('0').rstrip('.')}Z"
