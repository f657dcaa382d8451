"""Indexes of informers that several components use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from steersman.api.core.v1 import Pod
from steersman.client.informer import Informer

BY_NODE: Final = "spec.nodeName"
"""Name of the index of pods by the node that they are bound to."""

RUNNING_BY_CONTROLLER: Final = "metadata.ownerReferences.uid"
"""Name of the index of running pods by the UID of their controller."""

BY_LABEL: Final = "metadata.labels"
"""Name of the index of pods by each of their labels."""
_MOST_LABELS: Final = 32
"""Labels of a pod that is indexed by them."""


def by_node(pod: Pod) -> Iterable[str]:
    """Return the index values of a pod for BY_NODE."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def running_by_controller(pod: Pod) -> Iterable[str]:
    """Return the index values of a pod for RUNNING_BY_CONTROLLER."""
    if pod.status.phase != "Running" or pod.metadata.deletion_timestamp is not None:
        return ()
    return [each.uid for each in pod.metadata.owner_references if each.controller]


def by_label(pod: Pod) -> Iterable[str]:
    """Return the index values of a pod for BY_LABEL. A pod with too many labels has one value for all of them."""
    namespace, labels = pod.metadata.namespace, pod.metadata.labels
    if len(labels) > _MOST_LABELS:
        return (namespace,)
    return [_label(namespace, *each) for each in labels.items()]


def with_labels(pods: Informer[Pod], namespace: str, labels: Mapping[str, str]) -> Sequence[Pod]:
    """Return the pods of a namespace that have all these labels. The informer has the index BY_LABEL.

    The cost depends on the number of pods that have the rarest of the labels.
    """
    if not labels:
        return pods.list(namespace)
    rarest = min(
        (_label(namespace, *each) for each in labels.items()), key=lambda each: pods.count_indexed(BY_LABEL, each)
    )
    candidates = (*pods.indexed(BY_LABEL, rarest), *pods.indexed(BY_LABEL, namespace))
    return [each for each in candidates if labels.items() <= each.metadata.labels.items()]


def _label(namespace: str, key: str, value: str) -> str:
    return f"{namespace} {key}={value}"
