"""NodePool objects as the controller reads them."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from steersman.api.core.v1 import Taint
from steersman.api.meta.v1 import Condition
from steersman.client.api_resource import APIResource
from steersman.client.plain_object import PlainObject
from steersman.machinery.values.quantity import QuantityError, parse
from steersman.nodes.behaviour import duration_or_none
from steersman.nodes.simulated_node import CAPACITY

GROUP_NAME: Final = "simulation.steersman.dev"
VERSION: Final = "v1alpha1"
PLURAL: Final = "nodepools"
KIND: Final = "NodePool"
MOST_NAME: Final = 63
"""Characters of a pool's name, which is the value of a label."""
_MOST_TEMPLATE: Final = 16 * 1024
"""Bytes of a template's JSON, as every node has a copy."""

_is_decimal: Final = re.compile(r"[0-9]{1,30}(\.[0-9]{1,6})?", re.ASCII).fullmatch

Quantities = dict[str, str | int]


class NodePool(PlainObject):
    """A NodePool."""


NODE_POOLS: Final[APIResource[NodePool]] = APIResource(GROUP_NAME, VERSION, PLURAL, KIND, NodePool, namespaced=False)


class InvalidPool(ValueError):
    """A pool's spec cannot be followed. The text says why."""


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """Part of a NodePool."""


class _Metadata(_Part, frozen=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _NodeSpec(_Part, frozen=True):
    taints: list[Taint] = []


class _NodeInfo(_Part, frozen=True):
    architecture: str = ""


class _NodeStatus(_Part, frozen=True):
    capacity: Quantities = {}
    allocatable: Quantities = {}
    node_info: _NodeInfo = _NodeInfo()


class Template(_Part, frozen=True):
    """Properties of a pool's nodes, in the form of a Node."""

    metadata: _Metadata = _Metadata()
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    @property
    def capacity(self) -> dict[str, str]:
        """Capacity of a node, with the default ones."""
        return {**CAPACITY, **_texts(self.status.capacity)}

    @property
    def allocatable(self) -> dict[str, str]:
        """Resources of a node for pods."""
        return {**self.capacity, **_texts(self.status.allocatable)}


class Failures(_Part, frozen=True):
    """Nodes that stop answering."""

    mean_time: str = ""
    repair_after: str = ""


class Interruptions(_Part, frozen=True):
    """Nodes that are taken away after a notice."""

    mean_time: str = ""
    notice: str = "2m"


class PoolSpec(_Part, frozen=True):
    """Desired nodes of a pool."""

    replicas: int = 1
    template: Template = Template()
    zones: list[str] = []
    boot_time: str = ""
    price_per_hour: str = ""
    failures: Failures = Failures()
    interruptions: Interruptions = Interruptions()
    limits: Quantities = {}
    seed: int = 0

    @property
    def most(self) -> int:
        """Nodes that the limits allow of those desired."""
        capacity = self.template.capacity
        found = max(self.replicas, 0)
        for name, text in _texts(self.limits).items():
            each = 10**9 if name == "nodes" else parse(capacity.get(name, "0")).nanos()
            if each > 0:
                found = min(found, parse(text).nanos() // each)
        return found


class PoolStatus(_Part, frozen=True):
    """Nodes that exist, and their cost so far."""

    observed_generation: int = 0
    replicas: int = 0
    desired_replicas: int = 0
    ready_replicas: int = 0
    nodes_made: int = 0
    selector: str = ""
    zones: dict[str, int] = {}
    capacity: dict[str, str] = {}
    cost: str = "0"
    cost_time: str = ""
    price_per_hour: str = "0"
    conditions: list[Condition] = []


def spec_of(pool: NodePool) -> PoolSpec:
    """Return the spec of a pool. Raises InvalidPool."""
    if len(pool.metadata.name) > MOST_NAME:
        raise InvalidPool(f"metadata.name: more than {MOST_NAME} characters, and it becomes a label of nodes")
    try:
        spec = msgspec.convert(pool.spec or {}, PoolSpec)
        for each in _all_quantities(spec):
            parse(each)
    except msgspec.ValidationError:
        raise InvalidPool("spec: the fields are not those of the definition that this version installs") from None
    except QuantityError as error:
        raise InvalidPool(f"spec: {error}") from None
    size = len(msgspec.json.encode(spec.template))
    if size > _MOST_TEMPLATE:
        raise InvalidPool(f"spec.template: {size} bytes of JSON, more than {_MOST_TEMPLATE}")
    return spec


def status_of(pool: NodePool) -> PoolStatus:
    """Return the status of a pool; an empty one if somebody else has written an invalid one."""
    try:
        return msgspec.convert(pool.status or {}, PoolStatus)
    except msgspec.ValidationError:
        return PoolStatus()


def seconds_of(text: str) -> float:
    """Return the seconds of a duration; 0 for none."""
    return duration_or_none(text) or 0.0


def millionths_of(text: str) -> int:
    """Return a price or cost in millionths; 0 for text that is none."""
    if not _is_decimal(text):
        return 0
    whole, _, fraction = text.partition(".")
    return int(whole) * 10**6 + int(f"{fraction:0<6}")


def _texts(quantities: Quantities) -> dict[str, str]:
    return {name: str(amount) for name, amount in quantities.items()}


def _all_quantities(spec: PoolSpec) -> list[str]:
    status = spec.template.status
    return [str(each) for part in (status.capacity, status.allocatable, spec.limits) for each in part.values()]
