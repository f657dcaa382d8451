"""What an object uses of a quota: how many there are of its kind, and for services and claims, of what sort.

Follows k8s.io/apiserver `quota/v1` and pkg/quota/v1/evaluator/core. Pods and resource claims have modules of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, Final

from steersman.admission.interface import CREATE, UPDATE, Attributes
from steersman.api.core.v1 import PersistentVolumeClaim, ScopedResourceSelectorRequirement, Service
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.large_work.slow_lane import SlowLane
from steersman.machinery.selectors.labels import Predicate, SelectorError, new_requirement
from steersman.machinery.values.quantity import Quantity, parse

ONE: Final = Quantity(1)

_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_BY_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_STORAGE_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


def count_of(resource: GroupResource) -> str:
    """The name under which quotas count the objects of any resource."""
    return f"count/{resource}"


class Evaluator:
    """Measures the objects of one resource; this one counts them, also under an older name (`alias`)."""

    reads_only_the_object = True
    """Whether it can do its work beside the event loop: it looks up nothing else."""

    def __init__(self, resource: GroupResource, alias: str = "") -> None:
        self.count = count_of(resource)
        self.names = frozenset({self.count, alias} if alias else {self.count})

    def handles(self, attributes: Attributes) -> bool:
        """Whether the write can change what is used."""
        return attributes.operation == CREATE and not attributes.action.subresource

    def matching(self, names: Iterable[str]) -> set[str]:
        """Those of a quota's resources that such objects use."""
        return {name for name in names if name in self.names}

    def in_scope(self, selector: ScopedResourceSelectorRequirement, obj: Any) -> bool:
        """Whether a quota with this scope is about the object. Raises SelectorError."""
        return False

    def missing(self, names: set[str], obj: Any) -> str:
        """What the object must say as `names` are limited, "" if it says all."""
        return ""

    async def usage(self, obj: Any, namespace: str, lane: SlowLane | None = None) -> Amounts:
        """How much of which resources the object uses; `lane` is where a large one is measured."""
        return dict.fromkeys(self.names, ONE)


def select_name(selector: ScopedResourceSelectorRequirement, names: Collection[str]) -> bool:
    """Whether a scope selector on names (of a priority class, of volume attributes classes) selects any of `names`, or
    the lack of one. Raises SelectorError."""
    selects = _predicate(selector.scope_name, selector.operator, tuple(selector.values))
    return any(selects({selector.scope_name: name}) for name in names) if names else selects({})


@lru_cache(maxsize=256)
def _predicate(scope: str, operator: str, values: tuple[str, ...]) -> Predicate:
    if operator not in _OPERATORS:
        raise SelectorError(f'"{operator}" is not a valid scope selector operator')
    return new_requirement(scope, _OPERATORS[operator], values).compile()


class ServiceEvaluator(Evaluator):
    """Counts services, their node ports, and load balancers."""

    def __init__(self) -> None:
        super().__init__(GroupResource("", "services"))
        self.names = frozenset({self.count, "services", "services.nodeports", "services.loadbalancers"})

    def handles(self, attributes: Attributes) -> bool:
        """The type of a service can change."""
        return not attributes.action.subresource and attributes.operation in (CREATE, UPDATE)

    async def usage(self, obj: Service, namespace: str, lane: SlowLane | None = None) -> Amounts:
        spec = obj.spec
        node_ports = 0
        if spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is False:
            node_ports = sum(1 for port in spec.ports if port.node_port)
        elif spec.type in ("NodePort", "LoadBalancer"):
            node_ports = len(spec.ports)
        return {
            self.count: ONE,
            "services": ONE,
            "services.nodeports": Quantity(node_ports),
            "services.loadbalancers": Quantity(int(spec.type == "LoadBalancer")),
        }


class VolumeClaimEvaluator(Evaluator):
    """Counts persistent volume claims and adds up the storage that they request, in all and by storage class."""

    def __init__(self) -> None:
        super().__init__(GroupResource("", "persistentvolumeclaims"))
        self.names = frozenset({self.count, "persistentvolumeclaims", "requests.storage"})

    def handles(self, attributes: Attributes) -> bool:
        """A status tells of what was allocated and of the volume attributes class in use; it is recorded, but never
        refused for being too much."""
        if attributes.action.subresource == "status":
            return attributes.obj is not None and attributes.old is not None
        return not attributes.action.subresource and attributes.operation in (CREATE, UPDATE)

    def matching(self, names: Iterable[str]) -> set[str]:
        by_class = (f"{_BY_STORAGE_CLASS}persistentvolumeclaims", f"{_BY_STORAGE_CLASS}requests.storage")
        return {name for name in names if name in self.names or name.endswith(by_class)}

    def in_scope(self, selector: ScopedResourceSelectorRequirement, obj: PersistentVolumeClaim) -> bool:
        if selector.scope_name != "VolumeAttributesClass":
            return False
        classes = _volume_attributes_classes(obj)
        return bool(classes) if selector.operator == "Exists" else select_name(selector, classes)

    async def usage(self, obj: PersistentVolumeClaim, namespace: str, lane: SlowLane | None = None) -> Amounts:
        used = {"persistentvolumeclaims": ONE, self.count: ONE}
        storage_class = obj.metadata.annotations.get(_STORAGE_CLASS_ANNOTATION, obj.spec.storage_class_name)
        if storage_class:
            used[f"{storage_class}{_BY_STORAGE_CLASS}persistentvolumeclaims"] = ONE
        requested = obj.spec.resources.requests.get("storage")
        if requested is None:
            return used
        storage = parse(requested)
        allocated = obj.status.allocated_resources.get("storage")
        if allocated is not None:
            storage = max(storage, parse(allocated))
        used["requests.storage"] = storage = storage.round_up(0)
        if storage_class:
            used[f"{storage_class}{_BY_STORAGE_CLASS}requests.storage"] = storage
        return used


def _volume_attributes_classes(claim: PersistentVolumeClaim) -> set[str]:
    """The class that a claim asks for, has, or is being given."""
    status = claim.status
    names = {claim.spec.volume_attributes_class_name, status.current_volume_attributes_class_name}
    if status.modify_volume_status is not None:
        names.add(status.modify_volume_status.target_volume_attributes_class_name)
    return {name for name in names if name}
