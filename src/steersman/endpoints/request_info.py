"""Request info: the authorization attributes and the path template of a request, from one parse of method, path and
query.

The attributes follow k8s.io/apiserver `endpoints/request.RequestInfoFactory`. The templates follow its
`endpoints.APIInstaller` with the matching of go-restful's CurlyRouter.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from steersman.endpoints.query import first_parameter, truthy
from steersman.machinery.errors.go_numbers import parse_int
from steersman.machinery.go.strings import to_lower
from steersman.machinery.go.urls import unescape
from steersman.machinery.identity.action import Action
from steersman.machinery.selectors import fields, labels

VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SPECIAL_VERBS: Final = frozenset({"proxy", "watch"})
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_LONG_RUNNING_PATHS: Final = ("/debug/pprof/", "/debug/requests")
"""Beginnings of paths of profiles and of the stream of requests."""
_LONG_RUNNING_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_MOST_PARTS: Final = 10
"""Parts of a path: apis, group, version, watch, namespaces, the namespace, resource, name, subresource, and the
rest.
"""
_LONGEST_SELECTOR: Final = 4096
"""Limit of characters of a field selector that is searched for a name: a user with a longer one needs the right to list
all objects.
"""

NAMESPACE: Final = "namespaces/{namespace}/"
NAME: Final = "/{name}"
PATH: Final = "/{path:*}"


class BadRequestInfo(Exception):
    """A path without a kind in the place of a kind."""


class Target(Struct, frozen=True):
    """Values of the parameters of a path template; `path` is the path after the subresource."""

    namespace: str = ""
    name: str = ""
    subresource: str = ""
    path: str = ""


NO_TARGET: Final = Target()


class RequestInfo(Struct):
    """The authorization attributes of a request, with the template of its path and the template's parameters.

    `resource_request` is True if `action` is about a resource; for other requests `action` has only the verb.
    `template` is the template of a route for this path, "" if no route can match. `root` is the prefix of its group
    version, e.g. "/apis/apps/v1". `template` and `target` are parsed from the same parts as `action`; `installer.Route`
    compares them before anything is done.
    """

    path: str
    action: Action
    resource_request: bool = False
    template: str = ""
    root: str = ""
    target: Target = NO_TARGET
    long_running: bool = False
    """True if no deadline applies: watches, and connections to containers and proxies."""
    labels: tuple[str, ...] = ()
    """Cached labels of the request's metrics."""
    checked_route: int = 0
    """Number of the route that was found to agree with `action`, 0 before the first comparison."""
    unread_query: str = ""
    """The query of a list, watch or deletecollection, whose selectors may name an object. It is parsed on demand."""
    _authorized_action: Action | None = None
    _selectors: tuple[str, str] | None = None

    @property
    def authorized_action(self) -> Action:
        """The action, with the name of the single object that the field selector of a list or watch selects."""
        if not self.unread_query or self.action.verb == "deletecollection":
            return self.action
        if self._authorized_action is None:
            name = _selected_name(self.unread_query)
            self._authorized_action = msgspec.structs.replace(self.action, name=name) if name else self.action
        return self._authorized_action

    @property
    def selectors(self) -> tuple[str, str]:
        """The texts of the field selector and the label selector, "" for none."""
        if self._selectors is None:
            query = self.unread_query
            self._selectors = (
                first_parameter(query, "fieldSelector") or "",
                first_parameter(query, "labelSelector") or "",
            )
        return self._selectors


@lru_cache(2048)
def request_info(method: str, path: str, query_text: str) -> RequestInfo:
    """Return the request info, cached: equal requests share it, and callers must not change it.

    Raises BadRequestInfo for a `/watch` or `/proxy` path without a kind.
    """
    return read_request_info(method, path, query_text)


def read_request_info(method: str, path: str, query_text: str) -> RequestInfo:
    """Return a new request info. Raises BadRequestInfo."""
    path = unescape(path)
    parts = path.strip("/").split("/", _MOST_PARTS - 1)
    of_group = parts[0] == "apis"
    if len(parts) < (4 if of_group else 3) or not (of_group or parts[0] == "api"):
        return RequestInfo(path, Action(to_lower(method)), long_running=path.startswith(_LONG_RUNNING_PATHS))
    at = 3 if of_group else 2
    group, version, root = parts[1] if of_group else "", parts[at - 1], f"/{'/'.join(parts[:at])}"
    parts = parts[at:]
    template, target = _read_template(path, root, parts)
    action = _read_action(method, query_text, group, version, parts)
    info = RequestInfo(path, action, True, template, root if template else "", target)
    info.long_running = action.verb in _SPECIAL_VERBS or action.subresource in _LONG_RUNNING_SUBRESOURCES
    if action.verb in ("list", "watch", "deletecollection") and not action.name and parts[0] not in _SPECIAL_VERBS:
        info.unread_query = query_text
    return info


def _read_action(method: str, query_text: str, group: str, version: str, parts: list[str]) -> Action:
    """Return the action from the parts after the version. Raises BadRequestInfo."""
    verb = VERBS.get(method, "")
    if parts[0] in _SPECIAL_VERBS:
        if len(parts) < 2:
            raise BadRequestInfo("unable to determine kind and namespace from url")
        verb, parts = parts[0], parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    name = parts[1] if len(parts) > 1 else ""
    subresource = parts[2] if len(parts) > 2 and verb != "proxy" else ""
    if not name:
        verb = _collection_verb(verb, query_text)
    return Action(verb, group, version, parts[0], subresource, namespace, name)


def _collection_verb(verb: str, query_text: str) -> str:
    """Return the verb of a collection: a GET is a list or a watch, a DELETE a deletecollection."""
    if verb == "delete":
        return "deletecollection"
    if verb == "get":
        return "watch" if query_text and truthy(first_parameter(query_text, "watch")) else "list"
    return verb


def _selected_name(query_text: str) -> str:
    """Return the single name that a query's field selector selects, "" if there is none or an option is malformed."""
    text = first_parameter(query_text, "fieldSelector")
    if not text or "metadata.name" not in text or len(text) > _LONGEST_SELECTOR:
        return ""
    try:
        name = fields.parse(text).requires_exact_match("metadata.name") or ""
        labels.parse(first_parameter(query_text, "labelSelector") or "")
        for number in ("limit", "timeoutSeconds"):
            value = first_parameter(query_text, number)
            if value is not None:
                parse_int(value)
    except ValueError:
        return ""
    return "" if name in (".", "..") or "/" in name or "%" in name else name


def _read_template(path: str, root: str, parts: list[str]) -> tuple[str, Target]:
    """Return the template of a path from the parts after the version, and the values of its parameters.

    Parts that are no parameters are copied into the template. No route has braces there, so that a path with braces of
    its own matches no route.
    """
    if not path.startswith(f"{root}/"):
        return "", NO_TARGET
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
    template = f"{root}/{watch}{scope}{parts[0]}"
    name = subresource = rest = ""
    if len(parts) > 1:
        name = parts[1]
        template += NAME
    if len(parts) > 2:
        subresource = parts[2]
        template += f"/{subresource}"
    if len(parts) > 3:
        rest = "/".join(parts[3:])
        template += PATH
    return template, Target(namespace, name, subresource, rest)
