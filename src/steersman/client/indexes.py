"""Indexes of informers that several components use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.api.core.v1 import Pod

BY_NODE: Final = "spec.nodeName"
"""Name of the index of pods by the node that they are bound to."""

RUNNING_BY_CONTROLLER: Final = "metadata.ownerReferences.uid"
"""Name of the index of running pods by the UID of their controller."""


def by_node(pod: Pod) -> Iterable[str]:
    """Return the index values of a pod for BY_NODE."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def running_by_controller(pod: Pod) -> Iterable[str]:
    """Return the index values of a pod for RUNNING_BY_CONTROLLER."""
    if pod.status.phase != "Running" or pod.metadata.deletion_timestamp is not None:
        return ()
    return [each.uid for each in pod.metadata.owner_references if each.controller]
