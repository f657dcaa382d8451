"""CSIStorageCapacities: how much a driver could still provide of a class in a part of the cluster."""

from __future__ import annotations

from steersman.api.storage.v1 import CSIStorageCapacity
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.columns import CREATED_AT
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy


class CSIStorageCapacityStrategy(Strategy[CSIStorageCapacity]):
    allow_unconditional_update = False


CSI_STORAGE_CAPACITIES = Resource(
    kind=CSIStorageCapacity,
    group="storage.k8s.io",
    plural="csistoragecapacities",
    strategy=CSIStorageCapacityStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(CREATED_AT,),
    storage_version_hash="xeVl+2Ly1kE=",
)
