"""/debug/scheduling/NAMESPACE/NAME: the last decisions of a cluster's scheduler about a pod.

Authorized as other non-resource paths. 404 if no decision about the pod is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from steersman.endpoints.request import Request
from steersman.endpoints.responses import JSON_TYPE, error_response, method_not_allowed
from steersman.machinery.errors.status import StatusError
from steersman.net.message import Response
from steersman.scheduler.decisions import PATH, DecisionList, Decisions
from steersman.server.server import Server


def install_scheduling_paths(server: Server, decisions: Callable[[], Decisions | None]) -> None:
    """Add the path, which the index does not list; `decisions` returns those of the running scheduler, if one runs."""
    server.add_prefix(f"{PATH}/", partial(_answer, decisions))


async def _answer(decisions: Callable[[], Decisions | None], request: Request) -> Response:
    if request.method not in ("GET", "HEAD"):
        return error_response(request, method_not_allowed())
    namespace, _, name = request.path.removeprefix(f"{PATH}/").partition("/")
    kept = decisions()
    found = () if kept is None else tuple(kept.of(namespace, name))
    if not found:
        return error_response(request, StatusError(404, "NotFound", "no decision about this pod is kept"))
    return Response(200, [JSON_TYPE], msgspec.json.encode(DecisionList(namespace, name, found)) + b"\n")
