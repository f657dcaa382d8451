"""The order in which kube-apiserver reports its health checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

HOOK: Final = "poststarthook/"
"""Prefix of the checks of post-start hooks."""
_FIRST: Final = ("ping", "log", "loopback-serving-certificate", "etcd", "etcd-readiness", "informer-sync")
_HOOKS: Final = (
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/max-in-flight-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/aggregator-reload-proxy-client-cert",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
_SHUTDOWN: Final = "shutdown"
_RANKS: Final = {name: rank for rank, name in enumerate((*_FIRST, "", *_HOOKS))}
_OTHER_CHECK: Final = len(_FIRST)
_OTHER_HOOK: Final = len(_RANKS)


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of checks in kube-apiserver's order.

    A check that kube-apiserver does not have comes before all hooks, and a hook that it does not have after its hooks;
    otherwise such names keep their order.
    """
    return sorted(names, key=_rank)


def _rank(name: str) -> int:
    if name == _SHUTDOWN:
        return _OTHER_HOOK + 1
    return _RANKS.get(name, _OTHER_HOOK if name.startswith(HOOK) else _OTHER_CHECK)
