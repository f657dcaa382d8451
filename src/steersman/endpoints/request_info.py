"""What a request is about, and which template of a route its path fits: one reading of method, path and query.

What is judged follows k8s.io/apiserver `endpoints/request.RequestInfoFactory`, the templates follow its
`endpoints.APIInstaller` as go-restful's CurlyRouter matches them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from steersman.endpoints.query import first_parameter, truthy, unescape
from steersman.machinery.errors.go_numbers import parse_int
from steersman.machinery.go.strings import to_lower
from steersman.machinery.selectors import fields, labels

VERBS: Final = {
    "POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete",
}  # fmt: skip
_SPECIAL_VERBS: Final = frozenset({"proxy", "watch"})
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_LONG_RUNNING_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_MOST_PARTS: Final = 10
"""apis, group, version, watch, namespaces, the namespace, resource, name, subresource, and all that follows."""
_LONGEST_SELECTOR: Final = 4096
"""Characters of a field selector in which a name is looked for: who asks with more needs the right to list all."""

NAMESPACE: Final = "namespaces/{namespace}/"
NAME: Final = "/{name}"
PATH: Final = "/{path:*}"


class BadRequestInfo(Exception):
    """The path names no kind where it should."""


@dataclass(frozen=True, slots=True)
class Target:
    """What stands in a path for the parameters of its template: all that a handler may know of where it is to act.

    As upstream has it, the namespace of a path to a Namespace is that namespace. `path` is what follows the
    subresource.
    """

    namespace: str = ""
    name: str = ""
    subresource: str = ""
    path: str = ""


NO_TARGET: Final = Target()


@dataclass(slots=True)
class RequestInfo:
    """What the authorizer judges, and beside it the template of the path and what stands for its parameters.

    `resource_request` tells whether the resource fields count; for other requests only `path` and `verb` do.
    `template` is what a route for this path would be installed under; a path that no route can have has none. `root`
    is its group version's, e.g. "/apis/apps/v1". `template` and `target` come from the same parts as the fields that
    are judged, and `installer.Route` holds the one against the other before anything is done.
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
    template: str = ""
    root: str = ""
    target: Target = NO_TARGET
    long_running: bool = False
    """Whether no deadline holds: watches, and connections to containers and proxies."""
    labels: tuple[str, ...] = ()
    """Those of its metrics, once somebody has made them."""
    agreed: int = 0
    """The number of the route that was found to do what is judged, once one was."""
    _name: str = ""
    _unread_query: str = ""
    """The query of a list or watch, which may name an object. It is not looked at before somebody asks for a name."""

    @property
    def name(self) -> str:
        """The object's name: that of the path, or the one a list's or watch's field selector asks for."""
        if self._unread_query:
            self._name = _selected_name(self._unread_query)
            self._unread_query = ""
        return self._name


@lru_cache(2048)
def request_info(method: str, path: str, query_text: str) -> RequestInfo:
    """What the request is about; not to be changed, as requests alike share it.

    Raises BadRequestInfo for a `/watch` or `/proxy` path that names nothing.
    """
    return read_request_info(method, path, query_text)


def read_request_info(method: str, path: str, query_text: str) -> RequestInfo:
    """The same, made anew."""
    info = RequestInfo(False, unescape(path), to_lower(method))
    _read_path(info, method, query_text)
    if info.resource_request:
        info.long_running = info.verb in _SPECIAL_VERBS or info.subresource in _LONG_RUNNING_SUBRESOURCES
    else:
        info.long_running = info.path.startswith("/debug/pprof/")
    return info


def _read_path(info: RequestInfo, method: str, query_text: str) -> None:
    path = info.path
    parts = path.strip("/").split("/", _MOST_PARTS - 1)
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return
    info.api_prefix = parts[0]
    at = 1
    if parts[0] == "apis":
        if len(parts) < 4:
            return
        info.group = parts[1]
        at = 2
    info.resource_request = True
    info.version = parts[at]
    at += 1
    root = "/".join(parts[:at])
    parts = parts[at:]
    _read_template(info, root, parts)
    if parts[0] in _SPECIAL_VERBS:
        if len(parts) < 2:
            raise BadRequestInfo("unable to determine kind and namespace from url")
        info.verb = parts[0]
        parts = parts[1:]
    else:
        info.verb = VERBS.get(method, "")
    _read_parts(info, parts)
    if not info._name:
        _read_collection_verb(info, query_text)


def _read_parts(info: RequestInfo, parts: list[str]) -> None:
    if parts[0] == "namespaces" and len(parts) > 1:
        info.namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    info.resource = parts[0]
    count = len(parts)
    if count > 1:
        info._name = parts[1]
        if count > 2 and info.verb != "proxy":
            info.subresource = parts[2]


def _read_collection_verb(info: RequestInfo, query_text: str) -> None:
    """GET of a collection lists or watches it, DELETE deletes it; a GET with `metadata.name=x` names the object."""
    if info.verb == "delete":
        info.verb = "deletecollection"
    elif info.verb == "get":
        info.verb = "watch" if query_text and truthy(first_parameter(query_text, "watch")) else "list"
        info._unread_query = query_text


def _selected_name(query_text: str) -> str:
    """The one name that a query's field selector asks for; none if any of the options of a list cannot be read."""
    text = first_parameter(query_text, "fieldSelector")
    if not text or "metadata.name" not in text or len(text) > _LONGEST_SELECTOR:
        return ""
    try:
        name = fields.parse(text).requires_exact_match("metadata.name") or ""
        labels.parse(first_parameter(query_text, "labelSelector") or "")
        for number in ("limit", "timeoutSeconds"):
            parse_int(first_parameter(query_text, number) or "0")
    except ValueError:
        return ""
    return "" if name in (".", "..") or "/" in name or "%" in name else name


def _read_template(info: RequestInfo, root: str, parts: list[str]) -> None:
    """Sets template, root and target, of the parts behind the version.

    What stands where a template has no parameter is in the template as it is. No route is installed with braces there,
    so a path with braces of its own is like none.
    """
    if not info.path.startswith(f"/{root}/"):
        return
    info.root = f"/{root}"
    watch = ""
    if parts[0] == "watch" and len(parts) > 1:
        watch = "watch/"
        parts = parts[1:]
    namespace = scope = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 3 or (len(parts) == 3 and parts[2] not in _NAMESPACE_SUBRESOURCES):
            scope = NAMESPACE
            parts = parts[2:]
    template = f"/{root}/{watch}{scope}{parts[0]}"
    name = subresource = path = ""
    if len(parts) > 1:
        name = parts[1]
        template += NAME
    if len(parts) > 2:
        subresource = parts[2]
        template += f"/{subresource}"
    if len(parts) > 3:
        path = "/".join(parts[3:])
        template += PATH
    info.template = template
    info.target = Target(namespace, name, subresource, path)
