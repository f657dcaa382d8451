"""CSINodes: the storage drivers on a node."""

from __future__ import annotations

from steersman.api.storage.v1 import CSINode
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


class CSINodeStrategy(Strategy[CSINode]):
    allow_unconditional_update = False


CSI_NODES = Resource(
    kind=CSINode,
    group="storage.k8s.io",
    plural="csinodes",
    namespaced=False,
    strategy=CSINodeStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column(
            "Drivers",
            lambda n: len(n.spec.drivers or ()),
            type="integer",
            description="Drivers indicates the number of CSI drivers registered on the node",
        ),
        AGE,
    ),
    returns_deleted_object=True,
    storage_version_hash="Pe62DkZtjuo=",
)
