"""RuntimeClasses: which runtime runs a pod's containers."""

from __future__ import annotations

from steersman.api.node.v1 import RuntimeClass
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


class RuntimeClassStrategy(Strategy[RuntimeClass]):
    allow_create_on_update = True
    allow_unconditional_update = False


RUNTIME_CLASSES = Resource(
    kind=RuntimeClass,
    group="node.k8s.io",
    plural="runtimeclasses",
    namespaced=False,
    strategy=RuntimeClassStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(Column("Handler", lambda c: c.handler), AGE),
    storage_version_hash="WQTu1GL3T2Q=",
)
