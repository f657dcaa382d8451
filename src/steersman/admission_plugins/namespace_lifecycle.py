"""NamespaceLifecycle: nothing is made in a namespace that is missing or going; the system's own are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from steersman.admission.interface import CREATE, DELETE, UPDATE, Attributes, Plugin
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import CAUSE_NAMESPACE_TERMINATING, Cause, forbidden, internal, not_found
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.validation.formats import is_path_segment_name

IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_NAMESPACES: Final = GroupResource("", "namespaces")
_REVIEWS: Final = GroupResource("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(Plugin):
    """`phase` gives the phase of a namespace, None if there is none; the cache behind it is as fresh as storage."""

    name = "NamespaceLifecycle"
    operations = frozenset({CREATE, UPDATE, DELETE})
    mutates = True

    def __init__(self, phase: Callable[[str], str | None]) -> None:
        self._phase = phase

    async def admit(self, attributes: Attributes) -> None:
        is_namespace = attributes.kind.kind == "Namespace" and not attributes.kind.group
        if attributes.operation == DELETE:
            if is_namespace and attributes.name in IMMORTAL:
                raise forbidden(attributes.resource, attributes.name, "this namespace may not be deleted")
            return
        if not attributes.namespace or is_namespace or attributes.resource == _REVIEWS:
            return
        phase = self._phase(attributes.namespace)
        if phase is None:
            if wrong := is_path_segment_name(attributes.namespace):
                raise internal(f"invalid resource name {quote(attributes.namespace)}: [{' '.join(wrong)}]")
            raise not_found(_NAMESPACES, attributes.namespace)
        if attributes.operation != CREATE or phase != "Terminating":
            return
        error = attributes.forbid(
            f"unable to create new content in namespace {attributes.namespace} because it is being terminated"
        )
        text = f"namespace {attributes.namespace} is being terminated"
        error.causes = (Cause(CAUSE_NAMESPACE_TERMINATING, text, "metadata.namespace"),)
        raise error
