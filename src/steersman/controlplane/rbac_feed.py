"""Feed of the RBAC authorizer from the caches of its four resources.

While the newest version of a large role or binding is being decoded, the authorizer makes requests that need it wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.authorization.rbac import RbacAuthorizer
from steersman.authorization.rbac_bindings import Binding, RoleRules
from steersman.controlplane.feed import Feed
from steersman.store.store import Store

_GROUP: Final = "rbac.authorization.k8s.io"


def feed(authorizer: RbacAuthorizer, stores: Callable[[str, str], Store[Any]]) -> None:
    """Fill the authorizer with all stored objects, and follow every change."""
    for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
        store = stores(_GROUP, plural)
        if plural.endswith("roles"):
            Feed(store, _rules_in(store), authorizer.put_role, authorizer.mark_role_unparsed).begin()
        else:
            Feed(store, _binding_in(store), authorizer.put_binding, authorizer.mark_binding_unparsed).begin()


def _rules_in(store: Store[Any]) -> Callable[[str, str, bytes], RoleRules]:
    return lambda namespace, name, body: RoleRules(store.kind.decode(body).rules or ())


def _binding_in(store: Store[Any]) -> Callable[[str, str, bytes], Binding]:
    def binding(namespace: str, name: str, body: bytes) -> Binding:
        stored = store.kind.decode(body)
        return Binding(namespace, name, stored.role_ref, stored.subjects)

    return binding
