"""NamespaceLifecycle: nothing is created in missing or terminating namespaces; system namespaces cannot be deleted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from steersman.admission.interface import CREATE, DELETE, UPDATE, Attributes, NamespaceState, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import (
    CAUSE_NAMESPACE_TERMINATING,
    Cause,
    StatusError,
    forbidden,
    internal,
    not_found,
)
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.validation.formats import is_path_segment_name
from steersman.rest.objects import LookUp, no_look_up

IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_NAMESPACES: Final = GroupResource("", "namespaces")
_REVIEWS: Final = ("localsubjectaccessreviews", "authorization.k8s.io")


class NamespaceLifecycle(Plugin):
    """Checks the namespace of a write.

    `find` returns the state of a namespace by name, None if it is unknown; `look_up` reads it from storage, in case
    another server has written it.
    """

    name = "NamespaceLifecycle"
    operations = frozenset({CREATE, UPDATE, DELETE})
    mutates = True
    changed_fields = ()

    def __init__(self, find: Callable[[str], NamespaceState | None], look_up: LookUp = no_look_up) -> None:
        self._find = find
        self._look_up = look_up

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        is_namespace = attributes.kind.kind == "Namespace" and not attributes.kind.group
        action = attributes.action
        namespace = action.namespace
        if attributes.operation == DELETE:
            if is_namespace and attributes.name in IMMORTAL:
                raise forbidden(_NAMESPACES, attributes.name, "this namespace may not be deleted")
            return self._look_up("", namespace) if namespace and self._find(namespace) is None else None
        if not namespace or is_namespace or (action.resource, action.group) == _REVIEWS:
            return None
        found = self._find(namespace)
        if found is None:
            return self._admit_after_look_up(attributes, namespace)
        if found.phase == "Terminating" and attributes.operation == CREATE:
            raise _terminating(attributes, namespace)
        return None

    async def _admit_after_look_up(self, attributes: Attributes, namespace: str) -> None:
        """Check a write in a namespace that is unknown so far."""
        await self._look_up("", namespace)
        found = self._find(namespace)
        if found is None:
            if wrong := is_path_segment_name(namespace):
                raise internal(f"invalid resource name {quote(namespace)}: [{' '.join(wrong)}]")
            raise not_found(_NAMESPACES, namespace)
        if found.phase == "Terminating" and attributes.operation == CREATE:
            raise _terminating(attributes, namespace)


def _terminating(attributes: Attributes, namespace: str) -> StatusError:
    """Return the error for a new object in a namespace that is terminating."""
    error = attributes.forbid(f"unable to create new content in namespace {namespace} because it is being terminated")
    text = f"namespace {namespace} is being terminated"
    error.causes = (Cause(CAUSE_NAMESPACE_TERMINATING, text, "metadata.namespace"),)
    return error


NAMESPACE_LIFECYCLE: Final = Declaration(
    NamespaceLifecycle,
    on_by_default=True,
    make=lambda dependencies: NamespaceLifecycle(
        dependencies.namespace, dependencies.objects("", "namespaces").refresh
    ),
)
