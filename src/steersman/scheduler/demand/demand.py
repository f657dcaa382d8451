"""Demand of a pod on nodes, shared by all pods that demand the same.

Two pods with equal demands fit on the same nodes with the same scores, so results for one pod are reused for the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct, field

from steersman.api.core import v1 as core
from steersman.machinery.built_in.node_affinity import Matcher, named_nodes, preferred, required
from steersman.machinery.built_in.taints import is_tolerated
from steersman.machinery.codec.serializer import encode
from steersman.machinery.selectors.labels import Labels, Selector
from steersman.scheduler.demand.affinity_terms import AffinityTerm, PodTerms, terms_of
from steersman.scheduler.demand.images import images_of
from steersman.scheduler.demand.ports import HostPort, host_ports
from steersman.scheduler.demand.requests import Requests, requested_by
from steersman.scheduler.demand.spread import Spreading, spreading_of
from steersman.scheduler.demand.taints import UNSCHEDULABLE_TAINT
from steersman.scheduler.demand.weight import MOST, is_heavy

_LONGEST_KEY: Final = 2048


class DemandContext(Struct, frozen=True, eq=False):
    """Contribution of other objects in the cluster to a pod's demand."""

    sibling_selector: Selector
    """Selector of pods of the same Services and the same owner."""
    kept_away_by: Sequence[AffinityTerm] = ()
    """Required anti-affinity terms of other pods that select this pod."""
    liked_by: Sequence[AffinityTerm] = ()
    """Terms of other pods that select this pod and count in scores."""
    namespace_labels: Labels = field(default_factory=dict)
    device_resources: frozenset[str] = frozenset()
    """Requested extended resources that devices of a DeviceClass provide."""


class Demand(Struct, frozen=True, eq=False):
    """Demand of a pod, prepared for comparison with nodes."""

    key: bytes
    namespace: str
    requests: Requests
    node_name: str
    tolerations: Sequence[core.Toleration]
    tolerates_unschedulable: bool
    wanted_nodes: Matcher | None
    named_nodes: frozenset[str] | None
    preferred_nodes: Sequence[tuple[int, Matcher]]
    ports: Sequence[HostPort]
    images: Sequence[str]
    containers: int
    terms: PodTerms
    matches_itself: bool
    """True if the pod itself is selected by all its required affinity terms."""
    spreading: Spreading
    kept_away_by: Sequence[AffinityTerm]
    liked_by: Sequence[AffinityTerm]
    is_heavy: bool
    """True if checking a node takes long."""
    device_resources: frozenset[str] = frozenset()
    """Extended resources that devices provide on nodes that have none of their own."""


def demand_key(pod: core.Pod, context: DemandContext) -> bytes:
    """Return a short key that is equal for pods with equal demands."""
    spec = pod.spec
    affinity = spec.affinity
    by_labels = bool(spec.topology_spread_constraints) or (
        affinity is not None and not (affinity.pod_affinity is None and affinity.pod_anti_affinity is None)
    )
    labels = (sorted(pod.metadata.labels.items()), sorted(context.namespace_labels.items())) if by_labels else None
    containers = [
        (each.image, each.restart_policy, each.resources, each.ports)
        for each in (*(spec.containers or ()), *spec.init_containers)
    ]
    whole = encode(
        (
            pod.metadata.namespace,
            labels,
            spec.node_name,
            spec.node_selector,
            affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.overhead,
            spec.resources,
            containers,
            len(spec.init_containers),
            [each.image.reference for each in spec.volumes if each.image is not None],
            str(context.sibling_selector),
            [repr(each) for each in context.kept_away_by],
            [repr(each) for each in context.liked_by],
            sorted(context.device_resources),
        )
    )
    return whole if len(whole) <= _LONGEST_KEY else sha256(whole).digest()


def read_demand(pod: core.Pod, context: DemandContext, key: bytes) -> Demand:
    """Return the demand of a pod. Raises SelectorError if a spread constraint is invalid."""
    spec, labels = pod.spec, pod.metadata.labels
    terms = terms_of(pod)
    itself = bool(terms.required_affinity) and all(
        each.pods.matches(pod.metadata.namespace, labels, context.namespace_labels) for each in terms.required_affinity
    )
    return Demand(
        key=key,
        namespace=pod.metadata.namespace,
        requests=requested_by(spec),
        node_name=spec.node_name,
        tolerations=spec.tolerations,
        tolerates_unschedulable=is_tolerated(UNSCHEDULABLE_TAINT, spec.tolerations),
        wanted_nodes=required(spec),
        named_nodes=named_nodes(spec),
        preferred_nodes=preferred(spec),
        ports=host_ports(spec),
        images=images_of(spec),
        containers=len(spec.containers or ()) + len(spec.init_containers),
        terms=terms,
        matches_itself=itself,
        spreading=spreading_of(pod, context.sibling_selector),
        kept_away_by=context.kept_away_by,
        liked_by=context.liked_by,
        is_heavy=len(context.kept_away_by) + len(context.liked_by) > MOST or is_heavy(pod),
        device_resources=context.device_resources,
    )
