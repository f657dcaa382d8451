"""Matching of pods and Services, and the changes of a pod that concern its Services (k8s.io/endpointslice util)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from steersman.api.core.v1 import Pod, Service
from steersman.client.informer import Informer, Key, key_of, new_or_old
from steersman.machinery.built_in.pod_state import is_ready, is_terminal

_BY_LABEL: Final = "a label of the selector"


def add_selector_index(services: Informer[Service]) -> None:
    """Add an index of Services by one label of their selector."""
    services.add_index(_BY_LABEL, _one_label)


def services_of(services: Informer[Service], namespace: str, labels: Mapping[str, str]) -> Iterator[Key]:
    """Yield the Services that select pods with these labels.

    The cost depends on the number of labels, or on the number of Services in the namespace if that is smaller.
    """
    if services.count(namespace) < len(labels):
        yield from (key_of(each) for each in services.list(namespace) if selects(each, labels))
        return
    for key, value in labels.items():
        for each in services.indexed(_BY_LABEL, _label(namespace, key, value)):
            if selects(each, labels):
                yield key_of(each)


def selects(service: Service, labels: Mapping[str, str]) -> bool:
    """Return True if a Service selects pods with these labels. A Service without a selector selects none."""
    selector = service.spec.selector
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def affected_services(services: Informer[Service], old: Pod | None, new: Pod | None) -> set[Key]:
    """Return the Services that a change of a pod concerns."""
    if old is None or new is None:
        one = new_or_old(old, new)
        return set(services_of(services, one.metadata.namespace, one.metadata.labels))
    changed, moved = _has_changed(old, new), _may_have_moved(old, new)
    if not changed and not moved:
        return set()
    namespace = new.metadata.namespace
    current = set(services_of(services, namespace, new.metadata.labels))
    if not moved:
        return current
    before = set(services_of(services, namespace, old.metadata.labels))
    return current | before if changed else current ^ before


def may_be_reached(pod: Pod, *, terminating: bool) -> bool:
    """Return True if a pod has an address and has not ended. With `terminating` it may be marked for deletion."""
    if is_terminal(pod) or not (pod.status.pod_ip or pod.status.pod_ips):
        return False
    return terminating or pod.metadata.deletion_timestamp is None


def hostname_in(pod: Pod, service: Service) -> str:
    """Return the host name of a pod within the domain of a Service, "" if it has none."""
    spec = pod.spec
    return spec.hostname if spec.hostname and spec.subdomain == service.metadata.name else ""


def _one_label(service: Service) -> Iterable[str]:
    selector = service.spec.selector
    return (_label(service.metadata.namespace, *min(selector.items())),) if selector else ()


def _label(namespace: str, key: str, value: str) -> str:
    return f"{namespace} {key}={value}"


def _may_have_moved(old: Pod, new: Pod) -> bool:
    return (
        old.metadata.labels != new.metadata.labels
        or old.spec.hostname != new.spec.hostname
        or old.spec.subdomain != new.spec.subdomain
    )


def _has_changed(old: Pod, new: Pod) -> bool:
    """Return True if the reachability of a pod has changed. A pod that ends becomes unready, which is included."""
    return (
        old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or is_ready(old) != is_ready(new)
        or old.status.pod_ips != new.status.pod_ips
    )
