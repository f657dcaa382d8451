"""RuntimeClass: a pod gets the overhead and scheduling constraints of its RuntimeClass."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.admission_plugins.tolerations import merge_tolerations
from steersman.api.core.v1 import PodSpec
from steersman.api.node.v1 import RuntimeClass as Class
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import plain_internal
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values.quantity import parse
from steersman.rest.objects import LookUp, Reading, no_look_up

_PODS: Final = GroupResource("", "pods")
_OTHER_OVERHEAD: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_NO_OVERHEAD: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Plugin):
    """Applies RuntimeClasses. `find` returns a class by name, None if it is unknown; the class is shared, so do not
    change it.
    """

    name = "RuntimeClass"
    operations = frozenset({CREATE})
    resources = frozenset({_PODS})
    subresources = OBJECT_ALONE
    mutates = True
    changed_fields = ("spec.node_selector", "spec.tolerations", "spec.overhead")
    validates = True

    def __init__(self, find: Callable[[str], Any | None], look_up: LookUp = no_look_up) -> None:
        """Create the plugin; `look_up` reads a class from storage, in case another server has written it."""
        self._find = find
        self._look_up = look_up

    async def admit(self, attributes: Attributes) -> None:
        """Set overhead, node selector and tolerations of the pod. Raises StatusError 403 if the pod contradicts its
        class.

        An empty overhead is refused here: after preparation of the pod it looks like a missing one.
        """
        spec: PodSpec = attributes.obj.spec
        found = None if spec.runtime_class_name is None else await self._class(attributes, spec.runtime_class_name)
        if spec.overhead == {} and (found is None or found.overhead is None):
            raise attributes.forbid(_NO_OVERHEAD)
        if found is None:
            return
        if found.overhead is not None:
            fixed = found.overhead.pod_fixed
            if spec.overhead is not None and not _same(fixed, spec.overhead):
                raise attributes.forbid(_OTHER_OVERHEAD)
            spec.overhead = dict(fixed)
        if found.scheduling is not None:
            selector = found.scheduling.node_selector
            for key, value in selector.items():
                own = spec.node_selector.get(key, value)
                if own != value:
                    raise attributes.forbid(
                        f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                        f"pod.spec.nodeSelector[{key}] = {own}"
                    )
            spec.node_selector = spec.node_selector | selector
            spec.tolerations = merge_tolerations(spec.tolerations, map(copy, found.scheduling.tolerations))

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError 403 if the pod's overhead is not that of its class."""
        spec: PodSpec = attributes.obj.spec
        overhead = None
        if spec.runtime_class_name is not None:
            overhead = (await self._class(attributes, spec.runtime_class_name)).overhead
        if overhead is not None:
            if not _same(overhead.pod_fixed, spec.overhead or {}):
                raise attributes.forbid(_OTHER_OVERHEAD)
        elif spec.overhead:
            raise attributes.forbid(_NO_OVERHEAD)

    async def _class(self, attributes: Attributes, name: str) -> Class:
        if not name:
            raise plain_internal("resource name may not be empty")
        found: Class | None = self._find(name)
        if found is None:
            await self._look_up("", name)
            found = self._find(name)
        if found is None:
            raise attributes.forbid(f"pod rejected: RuntimeClass {quote(name)} not found")
        return found


def _same(one: dict[str, str], other: dict[str, str]) -> bool:
    """Return True if the amounts are equal by value."""
    return one.keys() == other.keys() and all(parse(one[name]) == parse(other[name]) for name in one)


_CLASS: Final = Reading(lambda obj: obj, "overhead", "scheduling")


def _make(dependencies: PluginDependencies) -> RuntimeClass:
    classes = dependencies.objects("node.k8s.io", "runtimeclasses")
    return RuntimeClass(lambda name: classes.read_cached("", name, _CLASS), classes.refresh)


RUNTIME_CLASS: Final = Declaration(RuntimeClass, on_by_default=True, make=_make)
