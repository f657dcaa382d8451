"""Permissions for the simulated driver's controllers on the tests' server."""

from __future__ import annotations

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.rbac.v1 import ClusterRoleBinding, RoleRef, Subject
from steersman.client.client import Client
from steersman.client.resources import CLUSTER_ROLE_BINDINGS
from steersman.controllers.volumes.driver.component import ACCOUNT


async def allow_driver(client: Client) -> None:
    """Grant the driver all permissions, as `steersman up` does."""
    subject = Subject(kind="ServiceAccount", name=ACCOUNT, namespace="kube-system")
    role = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="cluster-admin")
    binding = ClusterRoleBinding(metadata=ObjectMeta(name="driver"), subjects=[subject], role_ref=role)
    await client.create(CLUSTER_ROLE_BINDINGS, binding)
