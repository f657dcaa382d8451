"""RoleBindings: subjects that have the permissions of a Role or ClusterRole in one namespace."""

from __future__ import annotations

from functools import partial
from typing import Final

from steersman.api.rbac.v1 import RoleBinding
from steersman.kinds.built_in import built_in
from steersman.registry.rbac.binding_strategy import (
    BindingInquiry,
    BindingStrategy,
    binding_columns,
    set_binding_defaults,
)
from steersman.registry.rbac.validation import rbac_name
from steersman.rest.resource import Resource

ROLE_BINDINGS: Final = Resource(
    kind=built_in(RoleBinding, default=set_binding_defaults),
    plural="rolebindings",
    strategy=BindingStrategy(namespaced=True),
    inquiry=partial(BindingInquiry, "rolebindings"),
    name_validator=rbac_name,
    revalidates_metadata=True,
    columns=binding_columns("roleBinding"),
    storage_version_hash="eGsCzGH6b1g=",
)
