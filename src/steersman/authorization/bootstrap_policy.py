"""The roles and bindings every cluster starts with, as data (`bootstrap_policy.json`).

They are what kube-apiserver 1.36 writes at its first start. The roles of Kubernetes' own components and controllers
are among them; `admin`, `edit` and `view` have no rules here, a controller gathers them by their aggregation rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from steersman.api.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding

_API_VERSION: Final = "rbac.authorization.k8s.io/v1"


class BootstrapPolicy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The shipped objects, to be brought into the store with the functions of `reconcile`, in this order.

    Roles and role bindings name their namespace (kube-system, kube-public), which must be there before them.
    """

    cluster_roles: tuple[ClusterRole, ...]
    cluster_role_bindings: tuple[ClusterRoleBinding, ...]
    roles: tuple[Role, ...]
    role_bindings: tuple[RoleBinding, ...]


def load_bootstrap_policy() -> BootstrapPolicy:
    """Reads the shipped objects anew, each with its kind and version; the caller may change them."""
    data = Path(__file__).with_name("bootstrap_policy.json").read_bytes()
    policy = msgspec.json.decode(data, type=BootstrapPolicy)
    shipped: Iterator[ClusterRole | ClusterRoleBinding | Role | RoleBinding] = chain(
        policy.cluster_roles, policy.cluster_role_bindings, policy.roles, policy.role_bindings
    )
    for each in shipped:
        each.kind, each.api_version = type(each).__name__, _API_VERSION
    return policy
