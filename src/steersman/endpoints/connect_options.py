"""The options of a connection (PodExecOptions, ServiceProxyOptions...) out of the query of its request, and back.

Follows k8s.io/apiserver `endpoints/handlers` getRequestOptions and apimachinery's conversion of url.Values.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote_plus

import msgspec

from steersman.endpoints.query import parse_query, truthy
from steersman.endpoints.request import Request
from steersman.kinds.kind import Kind
from steersman.machinery.errors.status import bad_request
from steersman.rest.resource import Subresource

_PATH: Final = "path"
_TYPE_META: Final = ("kind", "apiVersion")


def read_options(subresource: Subresource[Any], kind: Kind[Any], request: Request) -> Any:
    """The options that a request asks for. Raises StatusError 400 for what is no number."""
    empty = kind.new()
    plain: dict[str, Any] = {}
    for each in msgspec.structs.fields(empty):
        name = each.encode_name
        given = request.query.get(name)
        if given is None or name in _TYPE_META:
            continue
        usual = getattr(empty, each.name)
        if isinstance(usual, bool):
            plain[name] = truthy(given)
        else:
            plain[name] = given if isinstance(usual, str) else request.query.get_all(name)
    if subresource.connect_path:
        plain[_PATH] = _path(request)
    try:
        return msgspec.convert(plain, type(empty), strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(str(error)) from None


def _path(request: Request) -> str:
    """What follows the subresource, as upstream's handlers see it: with a slash before it."""
    path = request.subpath
    return f"/{path}" if path and not path.startswith("/") else path


def ask_for(options: Any, request: Request) -> None:
    """Makes a request one that asks for these options instead, as a plugin has changed them. Raises StatusError 400 for
    another path: it decides where the request goes, and was authorized."""
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
