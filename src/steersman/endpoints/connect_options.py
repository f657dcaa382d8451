"""Options of connect requests (PodExecOptions, ServiceProxyOptions...), parsed from the query and written back to it.

Follows k8s.io/apiserver `endpoints/handlers` getRequestOptions.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote_plus

import msgspec

from steersman.endpoints.parameters import decode_parameters
from steersman.endpoints.query import parse_query
from steersman.endpoints.request import Request
from steersman.kinds.kind import Kind
from steersman.machinery.errors.status import bad_request
from steersman.rest.resource import Subresource

_PATH: Final = "path"
_TYPE_META: Final = ("kind", "apiVersion")


def read_options(subresource: Subresource[Any], kind: Kind[Any], request: Request) -> Any:
    """Return the options of a request. Raises StatusError 400 for a malformed value."""
    options = decode_parameters(type(kind.new()), request.query)
    if subresource.connect_path:
        options.path = _path(request)
    return options


def _path(request: Request) -> str:
    """Return the path after the subresource with a leading slash, as upstream's handlers see it."""
    path = request.subpath
    return f"/{path}" if path and not path.startswith("/") else path


def ask_for(options: Any, request: Request) -> None:
    """Rewrite a request's query to these options, which an admission plugin has changed.

    Raises StatusError 400 for a changed path: the path decides the destination and has been authorized.
    """
    pairs: list[tuple[str, str]] = []
    for each in msgspec.structs.fields(options):
        value = getattr(options, each.name)
        if each.encode_name == _PATH:
            if value != _path(request):
                raise bad_request("the path of a connection cannot be changed by admission")
        elif isinstance(value, bool):
            pairs += [(each.encode_name, "true")] if value else []
        elif isinstance(value, list):
            pairs += [(each.encode_name, str(item)) for item in value]
        elif value and each.encode_name not in _TYPE_META:
            pairs.append((each.encode_name, value))
    own = {each.encode_name for each in msgspec.structs.fields(options)}
    pairs += [(name, value) for name, value in request.query.pairs if name not in own]
    request.http.query = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs)
    request.query = parse_query(request.http.query)
