"""GET of one object."""

from __future__ import annotations

from steersman.endpoints.objects import item_response, representation
from steersman.endpoints.options import get_options
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.endpoints.spans import got, serialized
from steersman.net.message import Response
from steersman.rest.capabilities import Getter
from steersman.tracing.trace import current_step
from steersman.work.offloading import offload_if


async def get(scope: Scope[Getter], request: Request) -> Response:
    """Answer with the object; its stored encoding is reused if JSON of the stored version is wanted."""
    wanted = representation(scope, request)
    version = ""
    if request.query:
        # saves the calls of `offload_if` for most reads, which come from a cache
        long = request.has_long_query
        version = (await offload_if(True, get_options, request) if long else get_options(request)).resource_version
    reading = scope.storage.get(request.context(), request.action.name, version)
    if current_step() is None:
        return await item_response(scope, request, await reading, wanted)
    item = await got(request.action, version, reading)
    return await serialized(wanted, item_response(scope, request, item, wanted))
