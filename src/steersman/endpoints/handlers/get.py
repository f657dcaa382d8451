"""GET of one object."""

from __future__ import annotations

from steersman.endpoints.objects import item_response, representation
from steersman.endpoints.query import truthy
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery.errors.status import bad_request
from steersman.net.message import Response
from steersman.rest.capabilities import Getter


async def get(scope: Scope[Getter], request: Request) -> Response:
    """Answers with the object; its stored encoding is the answer's body where JSON of that version is wanted."""
    wanted = representation(scope, request)
    query = request.query
    version = ""
    if query:
        if truthy(query.get("export")):
            raise bad_request("the export parameter, deprecated since v1.14, is no longer supported")
        version = query.get("resourceVersion", "")
    item = await scope.storage.get(scope.context(request), request.action.name, version)
    return await item_response(scope, request, item, wanted)
