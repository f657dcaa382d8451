"""The verb and the target of a request: one record that every layer from the filters to the store receives."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.machinery.identity.schema import GroupResource

RESOURCE_VERBS: Final = frozenset(
    {"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}
)
"""Verbs of requests for resources."""
PATH_VERBS: Final = frozenset({"delete", "get", "head", "options", "patch", "post", "put"})
"""Verbs of requests for paths that name no resource."""


class Action(msgspec.Struct, frozen=True, gc=False):
    """The verb and target of a request (k8s.io/apiserver `RequestInfo`).

    For example `update` of `deployments/scale` with the name `web` in the namespace `default`, of apps/v1.

    `verb` is a Kubernetes verb (get, list, create...). For a path that names no resource, `verb` is the HTTP method in
    lower case and every other field is empty. `version` is the version in the request. `name` is empty if the request
    is for a collection. As upstream has it, the `namespace` of a request for a Namespace is the name of that Namespace.
    """

    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def group_resource(self) -> GroupResource:
        """Return the group and resource without the version, as error messages print them."""
        return GroupResource(self.group, self.resource)


NO_ACTION: Final = Action()
