"""What a request does, and to what: the one record of it that everything from the filters to the store is given."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.machinery.identity.schema import GroupResource


class Action(msgspec.Struct, frozen=True, gc=False):
    """`update` of `deployments/scale` named web in the namespace default, of apps/v1 (k8s.io/apiserver `RequestInfo`).

    `verb` is a Kubernetes verb (get, list, create...); for what is no resource it is a lower-case HTTP method, and
    nothing else is given. `version` is that of the request. `name` is empty where a collection is meant. As upstream
    has it, the namespace of a path to a Namespace is that namespace.
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
        """The resource of any version, for messages."""
        return GroupResource(self.group, self.resource)


NO_ACTION: Final = Action()
