"""Routes of resources by path template, created from the capabilities of their storage.

The template defines the `level` of a route. The request info, which the authorizer checks, comes from an independent
parse of the path. Before a handler runs, `Route.handler` compares the authorized action with the parameters of the
template and refuses any difference; only then is `request.action` set.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import replace

from steersman.endpoints.discovery import ServedResource
from steersman.endpoints.handlers.act import act
from steersman.endpoints.handlers.connect import connect
from steersman.endpoints.handlers.create import answer, create
from steersman.endpoints.handlers.delete import delete
from steersman.endpoints.handlers.delete_collection import delete_collection
from steersman.endpoints.handlers.get import get
from steersman.endpoints.handlers.list import list_
from steersman.endpoints.handlers.patch import patch
from steersman.endpoints.handlers.update import update
from steersman.endpoints.handlers.view import get_view, patch_view, update_view
from steersman.endpoints.handlers.watch import watch
from steersman.endpoints.request import Request
from steersman.endpoints.request_info import NAME, NAMESPACE, PATH, VERBS, RequestInfo, Target
from steersman.endpoints.responses import method_not_allowed
from steersman.endpoints.scope import Scope, Shared
from steersman.machinery.errors.status import bad_request, plain_internal
from steersman.machinery.identity.action import Action
from steersman.net.message import Response
from steersman.rest.bound import BoundResource
from steersman.rest.capabilities import (
    Answerer,
    CollectionDeleter,
    Creater,
    Getter,
    GracefulDeleter,
    Lister,
    ResourceStorage,
    Updater,
    provides,
    verbs_of,
)
from steersman.rest.resource import Resource, Subresource

C = TypeVar("C", bound=ResourceStorage)

Handle = Callable[[Request], Awaitable[Response]]
Routes = dict[str, "Route"]
"""Routes by template, e.g. "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"."""

_SUBRESOURCE_METHODS: Final = {"get": "GET", "update": "PUT", "patch": "PATCH", "create": "POST", "delete": "DELETE"}


class Level(Enum):
    """Scope of a route: all objects of a cluster, all objects of a namespace, one object, or a subresource of one."""

    CLUSTER = "cluster"
    NAMESPACE = "namespace"
    OBJECT = "object"
    SUBRESOURCE = "subresource"

    @property
    def named(self) -> bool:
        """True if the route is about one object."""
        return self in (Level.OBJECT, Level.SUBRESOURCE)


class Method(Struct, frozen=True):
    """A method of a route: its handler, and the verbs that permit it."""

    handle: Handle
    verbs: tuple[str, ...]


class Route(Struct):
    """The methods of one template."""

    group: str
    version: str
    resource: str
    subresource: str
    level: Level
    methods: dict[str, Method] = field(default_factory=dict)
    """Methods of the route by HTTP method."""
    warning: str = ""
    """Warning for every request that reaches a handler."""
    by_definition: bool = False
    """True for a custom resource; see `defined_routes` for its other requests."""
    number: int = field(default_factory=partial(next, count(1)))
    """A number that is unique among all routes ever created."""

    def handler(self, request: Request) -> Handle:
        """Return the handler of a request, and set the request's action.

        Raises StatusError 400 without a name, 405, and 500 if the route differs from what was authorized.
        """
        method = self.methods.get(request.method)
        if method is None:
            raise method_not_allowed()
        info = request.info
        if info.checked_route != self.number:
            self._check(info, method)
            info.checked_route = self.number
        request.action = info.action
        request.subpath = info.target.path
        return method.handle

    def is_judged(self, info: RequestInfo) -> bool:
        """Return True if a route of objects or collections reads what the authorizer was asked about."""
        return (
            self.level is not Level.SUBRESOURCE
            and self.level.named == bool(info.target.name)
            and self._does_what_is_judged(info.action, info.target)
        )

    def is_usual(self, request: Request) -> bool:
        """Return True if a request for a custom resource can be routed by its method and path."""
        return request.method in self.methods and bool(request.info.target.name or not self.level.named)

    def _check(self, info: RequestInfo, method: Method) -> None:
        target = info.target
        if self.level.named and not target.name:
            raise bad_request("name must be provided")
        if not self._does_what_is_judged(info.authorized_action, target) or info.action.verb not in method.verbs:
            raise plain_internal(f"what was authorized for {info.path!r} is not what its route does")

    def _does_what_is_judged(self, action: Action, target: Target) -> bool:
        judged = (action.group, action.version, action.resource, action.subresource, action.namespace)
        routed = (self.group, self.version, self.resource, self.subresource, target.namespace)
        if judged != routed or target.subresource != self.subresource:
            return False
        if self.level.named:
            return action.name == target.name
        # a field selector on the name narrows a list or watch, and the selector is applied by the storage
        return not target.name and (not action.name or action.verb in ("list", "watch"))


def offered(resource: Resource[Any], storage: ResourceStorage) -> Resource[Any]:
    """Return the resource with only the verbs that its storage supports."""
    able = verbs_of(storage)
    below = tuple(_offered_below(each, able) for each in resource.subresources)
    if able.issuperset(resource.verbs) and below == resource.subresources:
        return resource
    verbs = tuple(verb for verb in resource.verbs if verb in able)
    return replace(resource, verbs=verbs, subresources=tuple(each for each in below if each.verbs))


def _offered_below(subresource: Subresource, able: frozenset[str]) -> Subresource:
    """Return the subresource with only the supported verbs; acting and connecting subresources do not need the
    storage.
    """
    if subresource.create is not None or subresource.connect is not None or able.issuperset(subresource.verbs):
        return subresource
    return replace(subresource, verbs=tuple(verb for verb in subresource.verbs if verb in able))


def routes_of(
    versions: Iterable[ServedResource], bound: BoundResource[Any], storage: ResourceStorage, shared: Shared
) -> Routes:
    """Return the routes of a resource in these versions; `storage` supports all of its verbs."""
    routes: Routes = {}
    for each in versions:
        scope = Scope(each.resource, each.other, storage, shared, tables=bound.answerer is None)
        installer = _Installer(routes, scope, each.deprecation_warning)
        _install_resource(installer, scope)
        for subresource in each.subresources:
            _install_subresource(installer, scope, subresource, bound)
    return routes


def _with_capability(scope: Scope, storage: C) -> Scope[C]:
    """Return the scope, typed with the capability that `storage` was found to provide."""
    assert scope.storage is storage
    return cast("Scope[C]", scope)


class _Installer:
    """Adds the routes of one resource in one version."""

    def __init__(self, routes: Routes, scope: Scope, warning: str) -> None:
        self._routes = routes
        self._scope = scope
        self._warning = warning
        self.namespaced = scope.resource.namespaced

    def add(
        self,
        method: str,
        handle: Handle,
        *verbs: str,
        named: bool = False,
        subresource: str = "",
        watch: bool = False,
        everywhere: bool = False,
        path: bool = False,
    ) -> None:
        """Add a method to the route of a template: of one object if `named`, else of a collection.

        `everywhere` is the collection across all namespaces, `watch` the old path of watches, `path` any path after the
        subresource.
        """
        scope = self._scope
        plural = scope.resource.plural
        in_namespace = self.namespaced and not everywhere
        template = (
            f"{scope.root}/{'watch/' if watch else ''}{NAMESPACE if in_namespace else ''}{plural}"
            f"{NAME if named else ''}{f'/{subresource}' if subresource else ''}{PATH if path else ''}"
        )
        route = self._routes.get(template)
        if route is None:
            level = Level.NAMESPACE if in_namespace else Level.CLUSTER
            if named:
                level = Level.SUBRESOURCE if subresource else Level.OBJECT
            route = Route(
                scope.group,
                scope.version,
                plural,
                subresource,
                level,
                warning=self._warning,
                by_definition=scope.resource.by_definition,
            )
            self._routes[template] = route
        route.methods[method] = Method(handle, verbs)


def _install_resource(installer: _Installer, scope: Scope) -> None:
    verbs, storage = scope.resource.verbs, scope.storage
    if "get" in verbs and provides(storage, Getter):
        installer.add("GET", partial(get, _with_capability(scope, storage)), "get", named=True)
    if provides(storage, Updater):
        if "update" in verbs:
            installer.add("PUT", partial(update, _with_capability(scope, storage)), "update", named=True)
        if "patch" in verbs:
            installer.add("PATCH", partial(patch, _with_capability(scope, storage)), "patch", named=True)
    if "delete" in verbs and provides(storage, GracefulDeleter):
        installer.add("DELETE", partial(delete, _with_capability(scope, storage)), "delete", named=True)
    if "list" in verbs and provides(storage, Lister):
        lists: Handle = partial(list_, _with_capability(scope, storage))
        installer.add("GET", lists, "list", "watch")
        if installer.namespaced:
            installer.add("GET", lists, "list", "watch", everywhere=True)
    if "create" in verbs and provides(storage, Creater):
        installer.add("POST", partial(create, _with_capability(scope, storage)), "create")
    elif "create" in verbs and provides(storage, Answerer):
        installer.add("POST", partial(answer, _with_capability(scope, storage)), "create")
    if "deletecollection" in verbs and provides(storage, CollectionDeleter):
        installer.add("DELETE", partial(delete_collection, _with_capability(scope, storage)), "deletecollection")
    if scope.watcher is not None:
        watches: Handle = partial(watch, scope)
        installer.add("GET", watches, "watch", watch=True)
        installer.add("GET", watches, "watch", watch=True, named=True)
        if installer.namespaced:
            installer.add("GET", watches, "watch", watch=True, everywhere=True)


def _install_subresource(
    installer: _Installer, parent: Scope, subresource: Subresource, bound: BoundResource[Any]
) -> None:
    scope = parent
    if not subresource.tables:
        scope = Scope(parent.resource, parent.other, parent.storage, parent.shared, tables=False)
    name = subresource.name
    if name in bound.connects:
        connects: Handle = partial(connect, scope, subresource, bound.connects[name])
        for method in subresource.connect_methods:
            for path in (False, True) if subresource.connect_path else (False,):
                installer.add(method, connects, VERBS.get(method, ""), named=True, subresource=name, path=path)
        return
    for verb, handle in _subresource_handlers(scope, subresource, bound).items():
        if verb in subresource.verbs:
            installer.add(_SUBRESOURCE_METHODS[verb], handle, verb, named=True, subresource=name)


def _subresource_handlers(scope: Scope, subresource: Subresource, bound: BoundResource[Any]) -> dict[str, Handle]:
    """Return the supported handlers of a subresource by verb."""
    if subresource.name in bound.acts:
        return {"create": partial(act, scope, subresource, bound.acts[subresource.name])}
    handlers: dict[str, Handle] = {}
    storage = scope.storage
    if provides(storage, Getter):
        reads = _with_capability(scope, storage)
        handlers["get"] = partial(get, reads) if subresource.view is None else partial(get_view, reads, subresource)
    if provides(storage, Updater):
        writes = _with_capability(scope, storage)
        if subresource.view is None:
            handlers |= {"update": partial(update, writes), "patch": partial(patch, writes)}
        else:
            handlers["update"] = partial(update_view, writes, subresource)
            handlers["patch"] = partial(patch_view, writes, subresource)
    return handlers
