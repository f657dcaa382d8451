"""The options of a connection (PodExecOptions, ServiceProxyOptions...) out of the query of its request, and back.

Follows k8s.io/apiserver `endpoints/handlers` getRequestOptions and apimachinery's conversion of url.Values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote_plus

import msgspec

from steersman.endpoints.query import parse_query, truthy
from steersman.endpoints.request import Request
from steersman.kinds.kind import Kind
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import bad_request
from steersman.net.ascii import is_digits
from steersman.rest.resource import Subresource

_PATH: Final = "path"
_PORTS: Final = "ports"
_LONGEST_NUMBER: Final = 100
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
        elif isinstance(usual, str):
            plain[name] = given
        else:
            plain[name] = request.query.get_all(name) if name != _PORTS else _ports(request.query.get_all(name))
    if subresource.connect_path:
        plain[_PATH] = _path(request)
    return msgspec.convert(plain, type(empty))


def _ports(given: Iterable[str]) -> list[int]:
    """Raises StatusError 400 for what is no number of 16 bits."""
    found = []
    for text in ",".join(given).split(","):
        number = int(text) if is_digits(text) and len(text) <= _LONGEST_NUMBER else -1
        if not 0 <= number < 1 << 16:
            why = "value out of range" if is_digits(text) else "invalid syntax"
            raise bad_request(f"cannot convert to []int32: strconv.ParseUint: parsing {quote(text)}: {why}")
        found.append(number)
    return found


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
