"""ExtendedResourceToleration: who asks for a special device may run on the nodes kept for those who do."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin
from steersman.api.core.v1 import PodSpec, Toleration
from steersman.machinery.errors import GroupResource
from steersman.machinery.validation.resource_names import is_extended_resource

_PODS: Final = GroupResource("", "pods")


class ExtendedResourceToleration(Plugin):
    """Tolerates the taint `RESOURCE:NoSchedule` for each extended resource that a container requests."""

    name = "ExtendedResourceToleration"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    mutates = True

    async def admit(self, attributes: Attributes) -> None:
        if attributes.subresource:
            return
        spec: PodSpec = attributes.obj.spec
        requested = {
            name
            for container in (*(spec.containers or ()), *spec.init_containers)
            for name in container.resources.requests
            if is_extended_resource(name)
        }
        for name in sorted(requested):
            _tolerate(spec, Toleration(key=name, operator="Exists", effect="NoSchedule"))


def _tolerate(spec: PodSpec, wanted: Toleration) -> None:
    """Puts the toleration in the place of those that differ from it only in how long they hold, or at the end."""
    same = [
        each.key == wanted.key
        and each.effect == wanted.effect
        and each.operator == wanted.operator
        and each.value == wanted.value
        for each in spec.tolerations
    ]
    if any(same):
        spec.tolerations = [wanted if is_same else each for is_same, each in zip(same, spec.tolerations, strict=True)]
    else:
        spec.tolerations = [*spec.tolerations, wanted]
