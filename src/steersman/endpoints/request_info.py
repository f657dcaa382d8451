"""What a request is about: verb, group, version, resource, namespace and name, read from method, path and query.

Follows k8s.io/apiserver `endpoints/request.RequestInfoFactory`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import unquote, unquote_plus

from steersman.machinery import fields

_VERBS: Final = {
    "POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete",
}  # fmt: skip
_SPECIAL_VERBS: Final = frozenset({"proxy", "watch"})
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_LONG_RUNNING_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})


class BadRequestInfo(Exception):
    """The path names no kind where it should."""


@dataclass(slots=True)
class RequestInfo:
    """`resource_request` tells whether the resource fields count; for other requests only `path` and `verb` do.

    `extra_parts` is what follows the subresource, `watch_prefix` tells of a deprecated `/watch/` path.
    """

    resource_request: bool
    path: str
    verb: str
    api_prefix: str = ""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    extra_parts: tuple[str, ...] = ()
    watch_prefix: bool = False
    has_namespace: bool = False
    field_selector: str = ""
    label_selector: str = ""
    labels: tuple[str, ...] = ()
    """Those of its metrics, once somebody has made them."""

    @property
    def long_running(self) -> bool:
        """Whether no deadline holds: watches, and connections to containers and proxies."""
        if not self.resource_request:
            return self.path.startswith("/debug/pprof/")
        return self.verb in _SPECIAL_VERBS or self.subresource in _LONG_RUNNING_SUBRESOURCES


class Query(dict[str, str]):
    """Query parameters by name, the first of several; `get_all` has them all."""

    __slots__ = ("pairs",)

    pairs: list[tuple[str, str]]

    def get_all(self, name: str) -> list[str]:
        """Every value of `name`, in order."""
        return [value for key, value in self.pairs if key == name]


_NO_QUERY: Final = Query()
_NO_QUERY.pairs = []


def parse_query(text: str) -> Query:
    """The parameters of a query string. As in Go, pairs that cannot be unescaped or hold a semicolon are left out."""
    if not text:
        return _NO_QUERY
    query = Query()
    query.pairs = pairs = []
    for part in text.split("&"):
        if not part or ";" in part:
            continue
        key, _, value = part.partition("=")
        if "%" in part or "+" in part:
            if not (_escapes_are_valid(key) and _escapes_are_valid(value)):
                continue
            key, value = unquote_plus(key), unquote_plus(value)
        pairs.append((key, value))
        query.setdefault(key, value)
    return query


_HEX: Final = frozenset("0123456789abcdefABCDEF")


def _escapes_are_valid(text: str) -> bool:
    at = text.find("%")
    while at >= 0:
        if len(text) < at + 3 or text[at + 1] not in _HEX or text[at + 2] not in _HEX:
            return False
        at = text.find("%", at + 3)
    return True


def truthy(text: str | None) -> bool:
    """How a boolean query parameter reads: anything but an absent value, "false" and "0"."""
    return text is not None and text.lower() not in ("false", "0")


@lru_cache(2048)
def request_info(method: str, path: str, query_text: str) -> RequestInfo:
    """What the request is about; not to be changed, as requests alike share it.

    Raises BadRequestInfo for a `/watch` or `/proxy` path that names nothing.
    """
    return read_request_info(method, path, parse_query(query_text))


def read_request_info(method: str, path: str, query: Query) -> RequestInfo:
    """The same, made anew."""
    if "%" in path:
        path = unquote(path)
    info = RequestInfo(False, path, method.lower())
    parts = path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return info
    info.api_prefix = parts[0]
    at = 1
    if parts[0] == "apis":
        if len(parts) < 4:
            return info
        info.group = parts[1]
        at = 2
    info.resource_request = True
    info.version = parts[at]
    at += 1
    if parts[at] in _SPECIAL_VERBS:
        if len(parts) < at + 2:
            raise BadRequestInfo("unable to determine kind and namespace from url")
        info.verb = parts[at]
        info.watch_prefix = parts[at] == "watch"
        at += 1
    else:
        info.verb = _VERBS.get(method, "")
    _read_parts(info, parts[at:])
    if not info.name and info.verb in ("get", "delete"):
        _collection_verb(info, query)
    elif info.watch_prefix:
        _take_selectors(info, query)
    return info


def _read_parts(info: RequestInfo, parts: list[str]) -> None:
    if parts[0] == "namespaces" and len(parts) > 1:
        info.namespace = parts[1]
        info.has_namespace = True
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    info.resource = parts[0]
    count = len(parts)
    if count > 1:
        info.name = parts[1]
        if count > 2 and info.verb != "proxy":
            info.subresource = parts[2]
            if count > 3:
                info.extra_parts = tuple(parts[3:])


def _collection_verb(info: RequestInfo, query: Query) -> None:
    """GET of a collection lists or watches it, DELETE deletes it; a GET with `metadata.name=x` names the object."""
    _take_selectors(info, query)
    if info.verb == "delete":
        info.verb = "deletecollection"
        return
    info.verb = "watch" if truthy(query.get("watch")) else "list"
    _take_name(info)


def _take_selectors(info: RequestInfo, query: Query) -> None:
    info.label_selector = query.get("labelSelector", "")
    info.field_selector = query.get("fieldSelector", "")


def _take_name(info: RequestInfo) -> None:
    text = info.field_selector
    name = _exact_name(text) if "metadata.name" in text else ""
    if name and name not in (".", "..") and "/" not in name and "%" not in name:
        info.name = name


def _exact_name(text: str) -> str:
    """The one name that a field selector asks for, empty if it is none or cannot be read."""
    try:
        return fields.parse(text).requires_exact_match("metadata.name") or ""
    except fields.SelectorError:
        return ""
