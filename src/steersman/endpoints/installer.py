"""Routes: made for each resource from what it can do.

A route is found by group, version, resource and subresource, which the request info has read from the path already;
what is left to decide is whether the path has the shape that the resource's scope asks for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from steersman.endpoints.discovery import ServedResource
from steersman.endpoints.handlers.act import act
from steersman.endpoints.handlers.connect import connect
from steersman.endpoints.handlers.create import create
from steersman.endpoints.handlers.delete import delete
from steersman.endpoints.handlers.delete_collection import delete_collection
from steersman.endpoints.handlers.get import get
from steersman.endpoints.handlers.list import list_
from steersman.endpoints.handlers.patch import patch
from steersman.endpoints.handlers.update import update
from steersman.endpoints.handlers.view import get_view, patch_view, update_view
from steersman.endpoints.handlers.watch import watch
from steersman.endpoints.request import Request
from steersman.endpoints.request_info import RequestInfo
from steersman.endpoints.responses import method_not_allowed, unknown_resource
from steersman.endpoints.scope import Scope, Shared
from steersman.net.message import Response
from steersman.rest.resource import OtherVersion, Resource, Subresource

Handle = Callable[[Request], Awaitable[Response]]
Methods = dict[str, Handle]
RouteKey = tuple[str, str, str, str]

_SUBRESOURCE_METHODS: Final = {"get": "GET", "update": "PUT", "patch": "PATCH", "create": "POST", "delete": "DELETE"}


@dataclass(slots=True)
class Route:
    """The methods of one resource or subresource: on one object, on a collection, and across all namespaces."""

    namespaced: bool
    item: Methods = field(default_factory=dict)
    collection: Methods = field(default_factory=dict)
    everywhere: Methods = field(default_factory=dict)
    watch: Handle | None = None
    more_path: bool = False
    """Whether more path may follow (proxies)."""
    warning: str = ""
    """What every request is told that a handler answers, whatever the answer."""

    def handler(self, info: RequestInfo, method: str) -> Handle:
        """What answers this request. Raises StatusError 404, 405."""
        if info.watch_prefix:
            if self.watch is None:
                raise unknown_resource()
            methods: Methods = {"GET": self.watch}
        else:
            methods = self._methods(info)
        found = methods.get(method)
        if found is None:
            raise method_not_allowed()
        return found

    def _methods(self, info: RequestInfo) -> Methods:
        if info.extra_parts and not self.more_path:
            raise unknown_resource()
        named = bool(info.name) and info.verb not in ("list", "watch", "deletecollection")
        if named and not self.item:
            raise unknown_resource()
        if self.namespaced:
            if info.has_namespace:
                return self.item if named else self.collection
            if named:
                raise unknown_resource()
            return self.everywhere
        if info.has_namespace and info.resource != "namespaces":
            raise unknown_resource()
        return self.item if named else self.collection


def install(
    served: Iterable[ServedResource], storages: Callable[[Resource[Any]], Any], shared: Shared
) -> dict[RouteKey, Route]:
    """The routes of these resources."""
    routes: dict[RouteKey, Route] = {}
    for each in served:
        _install_version(routes, each.resource, each.other, storages(each.resource), shared)
    return routes


def _install_version(
    routes: dict[RouteKey, Route], resource: Resource[Any], other: OtherVersion | None, storage: Any, shared: Shared
) -> None:
    scope = Scope(resource, other, storage, shared, tables=resource.creater is None)
    warning = (other or resource).deprecation_warning
    made = {"": _resource_route(scope)}
    for subresource in resource.subresources:
        made[subresource.name] = _subresource_route(scope, subresource)
    for name, route in made.items():
        route.warning = warning
        routes[scope.group, scope.version, resource.plural, name] = route


def _resource_route(scope: Scope) -> Route:
    verbs = scope.resource.verbs
    route = Route(scope.resource.namespaced)
    item: dict[str, tuple[str, Any]] = {
        "get": ("GET", get), "update": ("PUT", update), "patch": ("PATCH", patch), "delete": ("DELETE", delete),
    }  # fmt: skip
    collection: dict[str, tuple[str, Any]] = {
        "list": ("GET", list_), "create": ("POST", create), "deletecollection": ("DELETE", delete_collection),
    }  # fmt: skip
    for verb, (method, handler) in item.items():
        if verb in verbs:
            route.item[method] = partial(handler, scope)
    for verb, (method, handler) in collection.items():
        if verb in verbs:
            route.collection[method] = partial(handler, scope)
    if "list" in verbs:
        route.everywhere["GET"] = partial(list_, scope)
    if "watch" in verbs:
        route.watch = partial(watch, scope)
    return route


def _subresource_route(parent: Scope, subresource: Subresource) -> Route:
    scope = parent
    if not subresource.tables:
        scope = Scope(parent.resource, parent.other, parent.storage, parent.shared, tables=False)
    route = Route(scope.resource.namespaced, more_path=subresource.connect_path)
    if subresource.connect is not None:
        for method in subresource.connect_methods:
            route.item[method] = partial(connect, scope, subresource)
        return route
    handlers: dict[str, Any]
    if subresource.view is not None:
        handlers = {"get": get_view, "update": update_view, "patch": patch_view}
        bound = {verb: partial(handler, scope, subresource) for verb, handler in handlers.items()}
    elif subresource.create is not None:
        bound = {"create": partial(act, scope, subresource)}
    else:
        handlers = {"get": get, "update": update, "patch": patch}
        bound = {verb: partial(handler, scope) for verb, handler in handlers.items()}
    for verb in subresource.verbs:
        if verb in bound:
            route.item[_SUBRESOURCE_METHODS[verb]] = bound[verb]
    return route
