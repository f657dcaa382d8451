"""Queueing hints: decide whether a cluster event may help a pod that a plugin rejected (EventsToRegister,
QueueingHintFn).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from steersman.api.core import v1 as core
from steersman.api.storage.v1 import CSINode
from steersman.machinery.built_in.node_affinity import required
from steersman.machinery.built_in.taints import is_tolerated
from steersman.machinery.built_in.volumes import claim_name
from steersman.machinery.selectors.labels import EVERYTHING, Labels, SelectorError
from steersman.scheduler.demand.affinity_terms import AffinityTerm, terms_of
from steersman.scheduler.demand.ports import conflict, host_ports
from steersman.scheduler.demand.requests import Resources, allocatable, requested_by, used_by
from steersman.scheduler.demand.spread import SpreadConstraint, spreading_of
from steersman.scheduler.demand.taints import UNSCHEDULABLE_TAINT, forbidding
from steersman.scheduler.demand.weight import is_heavy
from steersman.scheduler.fit import status as plugins
from steersman.scheduler.queue.cluster_events import Action, ClusterEvent

NamespaceLabels = Callable[[str], Labels]
Hint = Callable[[core.Pod, ClusterEvent, NamespaceLabels], bool]
Registered = tuple[str, Action, Hint]
"""Resource, actions on it, and the hint that decides about a pod."""


def always(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    """Return True: every such event may help."""
    return True


def never(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    """Return False: the executor of preemptions activates the pod itself."""
    return False


def _is_itself(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    return event.new is not None and event.new.metadata.uid == pod.metadata.uid


def _has_place(pod: core.Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _tolerates_unschedulable(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    return _is_itself(pod, event, labels_of) and is_tolerated(UNSCHEDULABLE_TAINT, event.new.spec.tolerations)


def _became_schedulable(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    return not event.new.spec.unschedulable and (event.old is None or event.old.spec.unschedulable)


def _became_tolerable(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    tolerations = pod.spec.tolerations
    kept_away = event.old is None or forbidding(tolerations, event.old.spec.taints) is not None
    return kept_away and forbidding(tolerations, event.new.spec.taints) is None


def _became_wanted(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    wanted = required(pod.spec)
    if wanted is None:
        return event.old is None
    is_wanted, was_wanted = (
        node is not None and wanted(node.metadata.name, node.metadata.labels) for node in (event.new, event.old)
    )
    return is_wanted and not was_wanted


def _freed_ports(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    return _has_place(event.old) and conflict(host_ports(pod.spec), host_ports(event.old.spec))


def _freed_resources(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    if event.new is None:
        return _has_place(event.old)
    if event.new.metadata.uid == pod.metadata.uid:
        return True
    if not event.new.spec.node_name:
        return False
    wanted, before, after = requested_by(pod.spec).total, used_by(event.old).total, used_by(event.new).total
    return _any_more(wanted, before, after)


def _any_more(wanted: Resources, before: Resources, after: Resources) -> bool:
    """Return True if there is more of a wanted resource before than after."""
    return bool(
        (wanted.milli_cpu and before.milli_cpu > after.milli_cpu)
        or (wanted.memory and before.memory > after.memory)
        or (wanted.ephemeral_storage and before.ephemeral_storage > after.ephemeral_storage)
        or any(
            amount and before.scalars.get(name, 0) > after.scalars.get(name, 0)
            for name, amount in wanted.scalars.items()
        )
    )


def _has_more_allocatable(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    wanted, has = requested_by(pod.spec).total, allocatable(event.new)
    would_do = (
        has.pods >= 1
        and wanted.milli_cpu <= has.milli_cpu
        and wanted.memory <= has.memory
        and wanted.ephemeral_storage <= has.ephemeral_storage
        and all(amount <= has.scalars.get(name, 0) for name, amount in wanted.scalars.items())
    )
    if not would_do or event.old is None:
        return would_do
    had = allocatable(event.old)
    return has.pods > had.pods or _any_more(wanted, has, had)


# Topology spread


def _constraints(pod: core.Pod) -> Sequence[SpreadConstraint]:
    try:
        return spreading_of(pod, EVERYTHING).hard
    except SelectorError:
        return ()


def _counts_elsewhere(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    for each in (event.new, event.old):
        if each is None or each.metadata.uid == pod.metadata.uid:
            continue
        if not _has_place(each) or each.metadata.namespace != pod.metadata.namespace:
            return False
    constraints = _constraints(pod)
    old, new = event.old, event.new
    if old is None or new is None:
        labels = (new or old).metadata.labels
        return any(each.selector.matches(labels) for each in constraints)
    tolerates_more = new.metadata.uid == pod.metadata.uid and new.spec.tolerations != old.spec.tolerations
    if tolerates_more and any(each.honors_taints for each in constraints):
        return True
    before, after = old.metadata.labels, new.metadata.labels
    return any(each.selector.matches(before) != each.selector.matches(after) for each in constraints)


def _changed_domains(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    keys = [each.topology_key for each in _constraints(pod)]
    old, new = event.old, event.new
    had, has = (node is not None and all(key in node.metadata.labels for key in keys) for node in (old, new))
    if old is None or new is None:
        return bool(had or has)
    if had != has:
        return True
    before, after = old.metadata.labels, new.metadata.labels
    return has and (any(before.get(key) != after.get(key) for key in keys) or old.spec.taints != new.spec.taints)


# Pod affinity


def _any_selects(terms: Iterable[AffinityTerm], pod: core.Pod, labels_of: NamespaceLabels) -> bool:
    """Return True if there are terms and all of them select a pod."""
    namespace, labels = pod.metadata.namespace, pod.metadata.labels
    around = labels_of(namespace)
    every = [each.pods.matches(namespace, labels, around) for each in terms]
    return bool(every) and all(every)


def _affinity_changed(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    old, new = event.old, event.new
    if old is not None and new is not None and new.metadata.uid == pod.metadata.uid:
        return True
    if any(each is not None and not _has_place(each) for each in (old, new)):
        return False
    terms = terms_of(pod)
    near, far = terms.required_affinity, terms.required_anti_affinity
    if old is not None and new is not None:
        came = not _any_selects(near, old, labels_of) and _any_selects(near, new, labels_of)
        return came or (_any_selects(far, old, labels_of) and not _any_selects(far, new, labels_of))
    if new is not None:
        return _any_selects(near, new, labels_of)
    if is_heavy(old) or _any_selects(far, old, labels_of):
        return True
    return _any_selects(terms_of(old).required_anti_affinity, pod, labels_of)


def _moved_node(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    terms = terms_of(pod)
    after = event.new.metadata.labels
    if event.old is None:
        return bool(terms.required_anti_affinity) or any(each.topology_key in after for each in terms.required_affinity)
    before = event.old.metadata.labels
    joined = any(
        each.topology_key in after and before.get(each.topology_key) != after[each.topology_key]
        for each in terms.required_affinity
    )
    return joined or any(
        each.topology_key in before and before[each.topology_key] != after.get(each.topology_key)
        for each in terms.required_anti_affinity
    )


# Volumes


def _is_its_claim(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    claim = event.new.metadata
    return claim.namespace == pod.metadata.namespace and any(
        claim_name(pod, volume) == claim.name for volume in pod.spec.volumes
    )


def _freed_volumes(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    return _has_place(event.old) and bool(event.old.spec.volumes)


def _makes_more(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    return event.old is None or event.old.allowed_topologies != event.new.allowed_topologies


def _waits_for_consumers(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    return bool(event.new.volume_binding_mode == "WaitForFirstConsumer")


def _attaches_more(pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> bool:
    had = _limits(event.old)
    return any(limit > had.get(driver, 0) for driver, limit in _limits(event.new).items())


def _limits(csi_node: CSINode) -> Mapping[str, int]:
    return {
        driver.name: driver.allocatable.count or 0
        for driver in csi_node.spec.drivers or ()
        if driver.allocatable is not None
    }


REGISTERED: Final[Mapping[str, Sequence[Registered]]] = {
    plugins.SCHEDULING_GATES: (("pods", Action.POD_GATES_ELIMINATED, _is_itself),),
    plugins.NODE_UNSCHEDULABLE: (
        ("nodes", Action.ADD | Action.NODE_TAINT, _became_schedulable),
        ("pods", Action.POD_TOLERATION, _tolerates_unschedulable),
    ),
    plugins.NODE_NAME: (("nodes", Action.ADD, always),),
    plugins.TAINT_TOLERATION: (
        ("nodes", Action.ADD | Action.NODE_TAINT, _became_tolerable),
        ("pods", Action.POD_TOLERATION, _is_itself),
    ),
    plugins.NODE_AFFINITY: (("nodes", Action.ADD | Action.NODE_LABEL, _became_wanted),),
    plugins.NODE_PORTS: (("pods", Action.DELETE, _freed_ports), ("nodes", Action.ADD, always)),
    plugins.NODE_RESOURCES_FIT: (
        ("pods", Action.DELETE | Action.POD_SCALE_DOWN, _freed_resources),
        ("nodes", Action.ADD | Action.NODE_ALLOCATABLE, _has_more_allocatable),
        ("deviceclasses", Action.ADD | Action.UPDATE, always),
    ),
    plugins.POD_TOPOLOGY_SPREAD: (
        ("pods", Action.ADD | Action.DELETE | Action.POD_LABEL | Action.POD_TOLERATION, _counts_elsewhere),
        ("nodes", Action.ADD | Action.DELETE | Action.NODE_LABEL | Action.NODE_TAINT, _changed_domains),
    ),
    plugins.INTER_POD_AFFINITY: (
        ("pods", Action.ADD | Action.DELETE | Action.POD_LABEL, _affinity_changed),
        ("nodes", Action.ADD | Action.NODE_LABEL, _moved_node),
    ),
    plugins.VOLUME_RESTRICTIONS: (
        ("pods", Action.DELETE, _freed_volumes),
        ("nodes", Action.ADD, always),
        ("persistentvolumeclaims", Action.ADD | Action.UPDATE, _is_its_claim),
    ),
    plugins.NODE_VOLUME_LIMITS: (
        ("csinodes", Action.ADD, always),
        ("csinodes", Action.UPDATE, _attaches_more),
        ("pods", Action.DELETE, _freed_volumes),
        ("persistentvolumeclaims", Action.ADD, _is_its_claim),
        ("volumeattachments", Action.DELETE, always),
    ),
    plugins.VOLUME_BINDING: (
        ("storageclasses", Action.ADD | Action.UPDATE, _makes_more),
        ("persistentvolumeclaims", Action.ADD | Action.UPDATE, _is_its_claim),
        ("persistentvolumes", Action.ADD | Action.UPDATE, always),
        ("nodes", Action.ADD | Action.NODE_LABEL, always),
        ("csinodes", Action.ADD, always),
        ("csidrivers", Action.UPDATE, always),
        ("csistoragecapacities", Action.ADD | Action.UPDATE, always),
    ),
    plugins.VOLUME_ZONE: (
        ("storageclasses", Action.ADD, _waits_for_consumers),
        ("nodes", Action.ADD | Action.NODE_LABEL, always),
        ("persistentvolumeclaims", Action.ADD | Action.UPDATE, _is_its_claim),
        ("persistentvolumes", Action.ADD | Action.UPDATE, always),
    ),
    plugins.DYNAMIC_RESOURCES: (
        ("nodes", Action.ADD | Action.NODE_LABEL, always),
        ("resourceclaims", Action.ADD | Action.UPDATE | Action.DELETE, always),
        ("pods", Action.POD_GENERATED_CLAIM, _is_itself),
        ("deviceclasses", Action.ADD | Action.UPDATE, always),
        ("resourceslices", Action.ADD | Action.UPDATE, always),
    ),
    plugins.DEFAULT_PREEMPTION: (("pods", Action.DELETE, never),),
}


def may_help(names: Iterable[str], pod: core.Pod, event: ClusterEvent, labels_of: NamespaceLabels) -> Iterable[str]:
    """Yield the plugins among `names`, which rejected a pod, for which an event may help.

    The demand of a heavy pod is not evaluated: every registered event may help it.
    """
    for name in names:
        for resource, actions, hint in REGISTERED.get(name, ()):
            if (
                resource == event.resource
                and event.action in actions
                and (is_heavy(pod) or hint(pod, event, labels_of))
            ):
                yield name
                break


def is_of_interest(event: ClusterEvent) -> bool:
    """Return True if any plugin has registered for such an event."""
    return _is_waited_for(event.resource, event.action)


@lru_cache(maxsize=1024)
def _is_waited_for(resource: str, action: Action) -> bool:
    return any(
        resource == each and action in actions for registered in REGISTERED.values() for each, actions, _ in registered
    )
