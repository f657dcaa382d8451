"""Which Services a pod belongs to, and which changes of a pod they have to know of (k8s.io/endpointslice util)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from steersman.api.core.v1 import Pod, Service
from steersman.client.informer import Informer, Key, key_of, new_or_old
from steersman.machinery.built_in.pod_state import is_ready, is_terminal

_BY_LABEL: Final = "a label of the selector"


def add_selector_index(services: Informer[Service]) -> None:
    """Makes Services findable by labels of pods."""
    services.add_index(_BY_LABEL, _one_label)


def services_of(services: Informer[Service], namespace: str, labels: Mapping[str, str]) -> Iterator[Key]:
    """The Services that select pods with these labels. Work follows labels, or Services where there are fewer of
    these."""
    if services.count(namespace) < len(labels):
        yield from (key_of(each) for each in services.list(namespace) if selects(each, labels))
        return
    for key, value in labels.items():
        for each in services.indexed(_BY_LABEL, _label(namespace, key, value)):
            if selects(each, labels):
                yield key_of(each)


def selects(service: Service, labels: Mapping[str, str]) -> bool:
    """Whether pods with these labels are of a Service. One without a selector has none."""
    selector = service.spec.selector
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def concerned(services: Informer[Service], old: Pod | None, new: Pod | None) -> set[Key]:
    """The Services that a change of a pod concerns."""
    if old is None or new is None:
        one = new_or_old(old, new)
        return set(services_of(services, one.metadata.namespace, one.metadata.labels))
    changed, moved = _has_changed(old, new), _may_have_moved(old, new)
    if not changed and not moved:
        return set()
    namespace = new.metadata.namespace
    found = set(services_of(services, namespace, new.metadata.labels))
    if not moved:
        return found
    before = set(services_of(services, namespace, old.metadata.labels))
    return found | before if changed else found ^ before


def may_be_reached(pod: Pod, *, terminating: bool) -> bool:
    """Whether a pod has an address and has not ended; `terminating`: even while it is being deleted."""
    if is_terminal(pod) or not (pod.status.pod_ip or pod.status.pod_ips):
        return False
    return terminating or pod.metadata.deletion_timestamp is None


def hostname_in(pod: Pod, service: Service) -> str:
    """The name that a pod has within the domain of a Service, or none."""
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
    """Whether a pod is reached in another way. (That it has ended is seen by its readiness.)"""
    return (
        old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or is_ready(old) != is_ready(new)
        or old.status.pod_ips != new.status.pod_ips
    )
