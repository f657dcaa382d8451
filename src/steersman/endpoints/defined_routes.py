"""Routing of requests for custom resources by verb and subresource instead of method and path.

Follows k8s.io/apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, which has no router: the authorized
verb selects the handler. A HEAD is a get or a list, any method below `/watch/` is a watch, and path segments after a
subresource are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from steersman.endpoints.installer import Handle, Route
from steersman.endpoints.patches import DEFINED, media_type, unknown_patch_format
from steersman.endpoints.request import Request
from steersman.machinery.errors.status import bad_request, method_not_supported, not_found
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource

_OF_ONE: Final = frozenset({"get", "update", "patch", "delete"})
_ACROSS: Final = frozenset({"list", "watch"})
"""Verbs that apply to all namespaces if the request names none."""


class DefinedRoutes:
    """The handlers of one custom resource in one version, by subresource and verb."""

    def __init__(self, routes: Iterable[Route], *, namespaced: bool, warning: str) -> None:
        self.warning = warning
        self.by_definition = True
        self._namespaced = namespaced
        self._handlers: Mapping[tuple[str, str], Handle] = {
            (route.subresource, verb): method.handle
            for route in routes
            for method in route.methods.values()
            for verb in method.verbs
        }
        self._subresources = {subresource for subresource, _ in self._handlers}

    def serves(self, action: Action) -> bool:
        """Return True if an action belongs to this resource: its scope (namespaced or cluster) matches."""
        if action.namespace:
            return self._namespaced
        return not self._namespaced or action.verb in _ACROSS

    def handler(self, request: Request) -> Handle:
        """Return the handler of a request, and set the request's action.

        Raises StatusError 404 for an unknown subresource, 405 for an unsupported verb, 400 if a required name is
        missing, and 415 for a patch without a name in an unknown media type.
        """
        action = request.info.action
        resource = GroupResource(action.group, action.resource)
        handle = self._handlers.get((action.subresource, action.verb))
        if handle is None:
            if self.warning:
                request.warnings.append(self.warning)  # upstream adds the warning before it looks for a handler
            if action.subresource not in self._subresources:
                raise not_found(resource, action.name)
            raise method_not_supported(resource, action.verb)
        if not action.name and action.verb in _OF_ONE:
            if action.verb == "patch" and media_type(request) not in DEFINED:
                raise unknown_patch_format()  # upstream checks the media type before the name
            raise bad_request("name must be provided")
        request.action = action
        return handle
