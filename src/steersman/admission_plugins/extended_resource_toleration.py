"""ExtendedResourceToleration: pods that request an extended resource tolerate the taint of its dedicated nodes."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.api.core.v1 import PodSpec, Toleration
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.validation.resource_names import is_extended_resource

_PODS: Final = GroupResource("", "pods")


class ExtendedResourceToleration(Plugin):
    """Adds a toleration of `RESOURCE:NoSchedule` for each extended resource that a container requests."""

    name = "ExtendedResourceToleration"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS})
    subresources = OBJECT_ALONE
    mutates = True
    changed_fields = ("spec.tolerations",)

    async def admit(self, attributes: Attributes) -> None:
        spec: PodSpec = attributes.obj.spec
        requested = {
            name
            for container in (*(spec.containers or ()), *spec.init_containers)
            for name in container.resources.requests
            if is_extended_resource(name)
        }
        if requested:
            _tolerate(spec, requested)


def _tolerate(spec: PodSpec, names: set[str]) -> None:
    """Add the tolerations, in place of ones that differ only in their seconds, or at the end."""
    tolerations_by_name = {name: Toleration(key=name, operator="Exists", effect="NoSchedule") for name in sorted(names)}
    tolerations = []
    replaced = set()
    for each in spec.tolerations:
        if each.key in tolerations_by_name and (each.operator, each.effect, each.value) == ("Exists", "NoSchedule", ""):
            replaced.add(each.key)
            tolerations.append(tolerations_by_name[each.key])
        else:
            tolerations.append(each)
    spec.tolerations = [*tolerations, *(each for name, each in tolerations_by_name.items() if name not in replaced)]


EXTENDED_RESOURCE_TOLERATION: Final = Declaration(
    ExtendedResourceToleration, on_by_default=False, make=lambda dependencies: ExtendedResourceToleration()
)
