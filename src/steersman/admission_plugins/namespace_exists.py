"""NamespaceExists: writes in missing namespaces are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steersman.admission.interface import CREATE, DELETE, UPDATE, Attributes, NamespaceState, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.machinery.errors.status import not_found
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.objects import LookUp, no_look_up

_NAMESPACES: Final = GroupResource("", "namespaces")


class NamespaceExists(Plugin):
    """Refuses writes in missing namespaces.

    `find` returns the state of a namespace by name, None if it is unknown; `look_up` reads it from storage.
    """

    name = "NamespaceExists"
    operations = frozenset({CREATE, UPDATE, DELETE})
    validates = True

    def __init__(self, find: Callable[[str], NamespaceState | None], look_up: LookUp = no_look_up) -> None:
        self._find = find
        self._look_up = look_up

    async def validate(self, attributes: Attributes) -> None:
        namespace = attributes.action.namespace
        if not namespace or (attributes.kind.kind == "Namespace" and not attributes.kind.group):
            return
        if self._find(namespace) is None:
            await self._look_up("", namespace)
        if self._find(namespace) is None:
            raise not_found(_NAMESPACES, namespace)


NAMESPACE_EXISTS: Final = Declaration(
    NamespaceExists,
    on_by_default=False,
    make=lambda dependencies: NamespaceExists(dependencies.namespace, dependencies.objects("", "namespaces").refresh),
)
