"""PodTolerationRestriction: a namespace says by annotations what its pods tolerate, and what they may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.tolerations import all_included, merge_tolerations
from steersman.api.core.v1 import PodSpec, Toleration
from steersman.machinery.errors import GroupResource, not_found, plain_internal
from steersman.machinery.go_types import GoType, struct_of
from steersman.machinery.json_tree import JSONSyntaxError, parse_tree
from steersman.machinery.pod_resources import compute_qos_class
from steersman.machinery.serializer import from_plain
from steersman.machinery.strict import DecodeError, Reader

_PODS: Final = GroupResource("", "pods")
_NAMESPACES: Final = GroupResource("", "namespaces")
DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
WHITELIST: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_MEMORY_PRESSURE: Final = Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule")


class Annotations(NamedTuple):
    """The two lists of a namespace as they are written."""

    defaults: str
    whitelist: str


def toleration_annotations(namespace: Any) -> Annotations:
    """Reads them out of a namespace."""
    annotations = namespace.metadata.annotations
    return Annotations(annotations.get(DEFAULTS, ""), annotations.get(WHITELIST, ""))


class PodTolerationRestriction(Plugin):
    """`find` gives the annotations of a namespace, None if there is no such namespace."""

    name = "PodTolerationRestriction"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    mutates = True
    validates = True

    def __init__(self, find: Callable[[str], Annotations | None]) -> None:
        self._find = find

    async def admit(self, attributes: Attributes) -> None:
        """Adds what the namespace's pods tolerate, and memory pressure where a pod has asked for resources."""
        if attributes.subresource:
            return
        spec: PodSpec = attributes.obj.spec
        extra = _parse(self._annotations(attributes).defaults) if attributes.operation == CREATE else []
        if (attributes.obj.status.qos_class or compute_qos_class(spec)) != "BestEffort":
            extra.append(msgspec.structs.replace(_MEMORY_PRESSURE))
        if extra:
            spec.tolerations = merge_tolerations(spec.tolerations, extra)
        await self.validate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Raises StatusError 500, as upstream, where the pod tolerates what it may not."""
        if attributes.subresource:
            return
        tolerations = attributes.obj.spec.tolerations
        allowed = _parse(self._annotations(attributes).whitelist) if tolerations else []
        if allowed and not all_included(tolerations, allowed):
            text = "pod tolerations (possibly merged with namespace default tolerations) conflict with its"
            raise plain_internal(f"{text} namespace whitelist")

    def _annotations(self, attributes: Attributes) -> Annotations:
        found = self._find(attributes.namespace)
        if found is None:
            raise not_found(_NAMESPACES, attributes.namespace)
        return found


_TOLERATIONS: Final = GoType("list", "[]v1.Toleration", element=struct_of(Toleration))


def _parse(text: str) -> list[Toleration]:
    """The tolerations in an annotation. Raises StatusError 500."""
    if not text:
        return []
    try:
        return from_plain(list[Toleration], Reader().read(_TOLERATIONS, parse_tree(text.encode())) or [])
    except (DecodeError, JSONSyntaxError) as error:
        raise plain_internal(str(error)) from None
