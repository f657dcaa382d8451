"""Default roles and bindings of every cluster, read from `bootstrap_policy.json`.

They are the objects that kube-apiserver 1.36 creates at its first start, with the roles of Kubernetes' own components
and controllers. `admin`, `edit` and `view` have no rules here: a controller fills them by their aggregation rules.
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
    """Default objects, to be stored with the functions of `reconcile` in this order.

    Roles and role bindings have a namespace (kube-system or kube-public), which must exist first.
    """

    cluster_roles: tuple[ClusterRole, ...]
    cluster_role_bindings: tuple[ClusterRoleBinding, ...]
    roles: tuple[Role, ...]
    role_bindings: tuple[RoleBinding, ...]


def load_bootstrap_policy() -> BootstrapPolicy:
    """Read the default objects, with kind and apiVersion. Each call returns new objects, which the caller may
    change.
    """
    data = Path(__file__).with_name("bootstrap_policy.json").read_bytes()
    policy = msgspec.json.decode(data, type=BootstrapPolicy)
    shipped: Iterator[ClusterRole | ClusterRoleBinding | Role | RoleBinding] = chain(
        policy.cluster_roles, policy.cluster_role_bindings, policy.roles, policy.role_bindings
    )
    for each in shipped:
        each.kind, each.api_version = type(each).__name__, _API_VERSION
    return policy
