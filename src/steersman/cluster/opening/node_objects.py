"""Objects and metadata of a dump's nodes that kubelets and controllers would otherwise write one by one at the start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from steersman.cluster.opening.items import Item, made
from steersman.controllers.node_lifecycle import RENAMED_LABELS
from steersman.controllers.node_ttl import ANNOTATION, lifetime_of
from steersman.controllers.volumes.driver.objects import DRIVER
from steersman.machinery.built_in.volumes import CONTROLLER_ATTACHES
from steersman.machinery.values import times
from steersman.nodes.heartbeats import lease_seconds
from steersman.nodes.node_set import SIMULATED, UNREACHABLE
from steersman.nodes.simulated_node import LEASES_NAMESPACE

_LEASE: Final = ("coordination.k8s.io", "Lease")
_CSI_NODE: Final = ("storage.k8s.io", "CSINode")


def complete_nodes(items: Iterable[Item], namespaced: Mapping[tuple[str, str], bool]) -> list[Item]:
    """Complete the nodes among the items. Return the leases and CSINodes that the dump lacks.

    A node that is not ready gets neither a lease nor answers. Nodes must have their uids. `namespaced` has the kinds
    that can be stored. Raises DumpError.
    """
    items = list(items)
    nodes = [each for each in items if (each.group, each.kind) == ("", "Node")]
    leases = {each.name for each in items if (each.group, each.kind) == _LEASE and each.namespace == LEASES_NAMESPACE}
    csi_nodes = {each.name for each in items if (each.group, each.kind) == _CSI_NODE}
    lifetime, seconds = str(lifetime_of(len(nodes))), lease_seconds(len(nodes))
    found = []
    for node in nodes:
        silent = False

        def change(plain: dict[str, Any]) -> None:
            nonlocal silent
            silent = _simulated(plain, lifetime)

        node.change(change)
        owners = [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}]
        if _LEASE in namespaced and node.name not in leases and not silent:
            spec = {"holderIdentity": node.name, "leaseDurationSeconds": seconds, "renewTime": times.now_micro()}
            found.append(_of_node(_LEASE, node.name, owners, LEASES_NAMESPACE, spec))
        if _CSI_NODE in namespaced and node.name not in csi_nodes:
            drivers = [{"name": DRIVER, "nodeID": node.name, "topologyKeys": None}]
            found.append(_of_node(_CSI_NODE, node.name, owners, "", {"drivers": drivers}))
    return found


def _of_node(
    kind: tuple[str, str], name: str, owners: list[dict[str, str]], namespace: str, spec: dict[str, Any]
) -> Item:
    item = made(f"{kind[0]}/v1", kind[1], name, {}, namespace=namespace, spec=spec)
    item.change(lambda plain: plain["metadata"].update(ownerReferences=owners))
    return item


def _simulated(plain: dict[str, Any], lifetime: str) -> bool:
    """Have a node simulated; one that is not ready does not answer. Return True if it does not."""
    metadata = plain["metadata"]
    annotations = metadata.get("annotations") or {}
    annotations[SIMULATED] = annotations[CONTROLLER_ATTACHES] = "true"
    annotations.setdefault(ANNOTATION, lifetime)
    conditions = (plain.get("status") or {}).get("conditions") or ()
    if any(each.get("type") == "Ready" and each.get("status") != "True" for each in conditions):
        annotations.setdefault(UNREACHABLE, "true")
    metadata["annotations"] = annotations
    labels = metadata.get("labels") or {}
    metadata["labels"] = labels | {old: labels[new] for new, old in RENAMED_LABELS if new in labels}
    return bool(annotations.get(UNREACHABLE) == "true")
