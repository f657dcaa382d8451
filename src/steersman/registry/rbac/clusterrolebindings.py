"""ClusterRoleBindings: subjects that have the permissions of a ClusterRole in the whole cluster."""

from __future__ import annotations

from functools import partial
from typing import Final

from steersman.api.rbac.v1 import ClusterRoleBinding
from steersman.kinds.built_in import built_in
from steersman.registry.rbac.binding_strategy import (
    BindingInquiry,
    BindingStrategy,
    binding_columns,
    set_binding_defaults,
)
from steersman.registry.rbac.validation import rbac_name
from steersman.rest.resource import Resource

CLUSTER_ROLE_BINDINGS: Final = Resource(
    kind=built_in(ClusterRoleBinding, default=set_binding_defaults),
    plural="clusterrolebindings",
    namespaced=False,
    strategy=BindingStrategy(namespaced=False),
    inquiry=partial(BindingInquiry, "clusterrolebindings"),
    name_validator=rbac_name,
    revalidates_metadata=True,
    columns=binding_columns("clusterRoleBinding"),
    storage_version_hash="48tpQ8gZHFc=",
)
