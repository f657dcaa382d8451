"""NamespaceAutoProvision: missing namespaces are created when an object is created in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from steersman.admission.interface import CREATE, Attributes, NamespaceState, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.api.core.v1 import Namespace
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.errors.status import StatusError
from steersman.rest.context import loopback


class NamespaceAutoProvision(Plugin):
    """Creates missing namespaces.

    `find` returns the state of a namespace by name, None if it does not exist; `make` creates a namespace by name.
    """

    name = "NamespaceAutoProvision"
    operations = frozenset({CREATE})
    mutates = True
    changed_fields = ()

    def __init__(self, find: Callable[[str], NamespaceState | None], make: Callable[[str], Awaitable[Any]]) -> None:
        self._find = find
        self._make = make

    async def admit(self, attributes: Attributes) -> None:
        """Create the namespace, except on a dry run. Raises StatusError 403 if it cannot be created."""
        namespace = attributes.action.namespace
        if attributes.dry_run or not namespace or (attributes.kind.kind == "Namespace" and not attributes.kind.group):
            return
        if self._find(namespace) is not None:
            return
        try:
            await self._make(namespace)
        except StatusError as error:
            if error.reason == "AlreadyExists":  # another request created it meanwhile
                return
            raise attributes.forbid(error.message) from error


def _make(dependencies: PluginDependencies) -> NamespaceAutoProvision:
    namespaces = dependencies.objects("", "namespaces")

    def make(name: str) -> Awaitable[Any]:
        return namespaces.create(loopback(), Namespace(metadata=ObjectMeta(name=name)))

    return NamespaceAutoProvision(dependencies.namespace, make)


NAMESPACE_AUTO_PROVISION: Final = Declaration(NamespaceAutoProvision, on_by_default=False, make=_make)
