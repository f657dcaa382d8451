"""Requests for resources that definitions make, answered by what they are about and not by method and path.

Follows k8s.io/apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, which has no router: the verb that was
authorized says what is done, so that a HEAD is a get or a list, any method below `/watch/` a watch, and what stands
behind a subresource is passed over.
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
"""Verbs that are for all namespaces where none is named."""


class DefinedRoutes:
    """The handlers of one defined resource in one version, by subresource and verb."""

    def __init__(self, routes: Iterable[Route], *, namespaced: bool, warning: str) -> None:
        self.warning = warning
        self._namespaced = namespaced
        self._handlers: Mapping[tuple[str, str], Handle] = {
            (route.subresource, verb): method.handle
            for route in routes
            for method in route.methods.values()
            for verb in method.verbs
        }
        self._subresources = {subresource for subresource, _ in self._handlers}

    def has(self, action: Action) -> bool:
        """Return True if requests about this are for the resource: its scope is theirs."""
        if action.namespace:
            return self._namespaced
        return not self._namespaced or action.verb in _ACROSS

    def handler(self, request: Request) -> Handle:
        """Return the handler of this request, which from now on knows its action.

        Raises StatusError 404 for another subresource, 405 for another verb, 400 without a name where one is needed,
        415 for such a patch in a media type that is none of patches.
        """
        action = request.info.action
        resource = GroupResource(action.group, action.resource)
        handle = self._handlers.get((action.subresource, action.verb))
        if handle is None:
            if self.warning:
                request.warnings.append(self.warning)  # which upstream adds before it looks for a handler
            if action.subresource not in self._subresources:
                raise not_found(resource, action.name)
            raise method_not_supported(resource, action.verb)
        if not action.name and action.verb in _OF_ONE:
            if action.verb == "patch" and media_type(request) not in DEFINED:
                raise unknown_patch_format()  # which upstream looks at before it looks for the name
            raise bad_request("name must be provided")
        request.action = action
        return handle
