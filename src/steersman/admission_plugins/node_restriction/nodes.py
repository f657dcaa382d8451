"""Limits of a kubelet's writes to its Node: no taints, no owners, and of Kubernetes' labels only kubelet labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steersman.api.core.v1 import Node
from steersman.machinery.errors.field import quote

_RESTRICTED: Final = "node-restriction.kubernetes.io"
_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
_OWN_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_OWN_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")


def forbidden_in_new_node(name: str, node: Node) -> str:
    """Return the reason why a kubelet may not create this Node; "" if it may."""
    if node.spec.config_source is not None:
        return f"node {quote(name)} is not allowed to create pods with a non-nil configSource"
    labels = _forbidden_labels({}, node.metadata.labels)
    if labels:
        return f"node {quote(name)} is not allowed to set the following labels: {', '.join(labels)}"
    return ""


def forbidden_in_node(name: str, old: Node, new: Node) -> str:
    """Return the reason why a kubelet may not make this update of its Node; "" if it may."""
    source = new.spec.config_source
    if source is not None and source != old.spec.config_source:
        return f"node {quote(name)} is not allowed to update configSource to a new non-nil configSource"
    if new.spec.taints != old.spec.taints:
        return f"node {quote(name)} is not allowed to modify taints"
    if new.metadata.owner_references != old.metadata.owner_references:
        return f"node {quote(name)} is not allowed to modify ownerReferences"
    labels = _forbidden_labels(old.metadata.labels, new.metadata.labels)
    if labels:
        return f"is not allowed to modify labels: {', '.join(labels)}"
    return ""


def _forbidden_labels(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the changed labels that a kubelet may not change, in order."""
    changed = (key for key in {*old, *new} if old.get(key) != new.get(key))
    return sorted(key for key in changed if _is_forbidden(key))


def _is_forbidden(label: str) -> bool:
    domain, slash, _ = label.partition("/")
    if not slash:
        return False
    if _is_in(domain, _RESTRICTED):
        return True
    if not any(_is_in(domain, each) for each in _KUBERNETES):
        return False
    return label not in _OWN_LABELS and not any(_is_in(domain, each) for each in _OWN_DOMAINS)


def _is_in(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")
