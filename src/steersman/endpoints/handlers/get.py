"""GET of one object."""

from __future__ import annotations

from time import monotonic

from steersman.endpoints.objects import item_response, representation
from steersman.endpoints.options import get_options
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import ANSWER_GOT, GET
from steersman.net.message import Response
from steersman.rest.capabilities import Getter
from steersman.tracing.trace import END, current_recorder
from steersman.work.offloading import offload_if


async def get(scope: Scope[Getter], request: Request) -> Response:
    """Answer with the object; its stored encoding is reused if JSON of the stored version is wanted."""
    negotiated = representation(scope, request)
    version = ""
    if request.query:
        # saves the calls of `offload_if` for most reads, which come from a cache
        long = request.has_long_query
        version = (await offload_if(True, get_options, request) if long else get_options(request)).resource_version
    reading = scope.storage.get(request.context(), request.action.name, version)
    recorder = current_recorder()
    if recorder is None:
        return await item_response(scope, request, await reading, negotiated)
    marks = recorder.marks
    try:
        marks += (GET, monotonic(), version)
        item = await reading
        marks += (ANSWER_GOT, monotonic(), negotiated.media)
        response = await item_response(scope, request, item, negotiated)
        marks += (END, monotonic(), None)
    except BaseException as error:
        recorder.fail_open(error)
        raise
    return response
