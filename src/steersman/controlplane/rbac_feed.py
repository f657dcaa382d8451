"""Feeds the RBAC authorizer from the caches of its four resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.authorization.rbac import RbacAuthorizer
from steersman.storage.entry import WatchEvent
from steersman.store.store import Store

Set = Callable[[str, str, Any | None], None]


def feed(authorizer: RbacAuthorizer, stores: Callable[[str, str], Store[Any]]) -> None:
    """Puts what is stored into the authorizer, and from now on every change."""
    group = "rbac.authorization.k8s.io"
    sets: dict[str, Set] = {
        "clusterroles": lambda _, name, obj: authorizer.set_cluster_role(name, obj),
        "clusterrolebindings": lambda _, name, obj: authorizer.set_cluster_role_binding(name, obj),
        "roles": authorizer.set_role,
        "rolebindings": authorizer.set_role_binding,
    }
    for plural, put in sets.items():
        _follow(stores(group, plural), put)


def _follow(store: Store[Any], put: Set) -> None:
    decode = store.encoding.decode

    def deliver(event: WatchEvent) -> None:
        obj = decode(event.entry.body)
        metadata = obj.metadata
        put(metadata.namespace, metadata.name, None if event.type == "DELETED" else obj)

    found, _ = store.cacher.list(store.prefix)
    store.cacher.watch(store.prefix, after_revision=None, deliver=deliver)
    for entry in found:
        obj = decode(entry.body)
        put(obj.metadata.namespace, obj.metadata.name, obj)
