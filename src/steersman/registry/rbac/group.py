"""rbac.authorization.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.rbac.clusterrolebindings import CLUSTER_ROLE_BINDINGS
from steersman.registry.rbac.clusterroles import CLUSTER_ROLES
from steersman.registry.rbac.rolebindings import ROLE_BINDINGS
from steersman.registry.rbac.roles import ROLES

RBAC: Final = APIGroup(
    name="rbac.authorization.k8s.io",
    priority=17000,
    versions=(Version("v1"),),
    empty_versions=("v1alpha1", "v1beta1"),
    resources=(
        CLUSTER_ROLE_BINDINGS,
        CLUSTER_ROLES,
        ROLE_BINDINGS,
        ROLES,
    ),
)
