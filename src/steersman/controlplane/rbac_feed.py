"""Feeds the RBAC authorizer from the caches of its four resources."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from steersman.authorization.rbac import RbacAuthorizer
from steersman.controlplane.follower import Changed, Follower
from steersman.storage.entry import Entry
from steersman.store.store import Store

logger = logging.getLogger(__name__)

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
        store = stores(group, plural)
        Follower(store, _decoded(store, put)).begin()


def _decoded(store: Store[Any], put: Set) -> Changed:
    """Puts objects; one that cannot be read grants nothing, and keeps nobody from being judged by the rest."""

    def changed(namespace: str, name: str, entry: Entry | None) -> None:
        obj = None
        if entry is not None:
            try:
                obj = store.encoding.decode(entry.body)
            except Exception:
                logger.exception("%s cannot be read and counts as missing", entry.key)
        put(namespace, name, obj)

    return changed
