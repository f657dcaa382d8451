"""ResourceClaimTemplates: claims that are made for each pod."""

from __future__ import annotations

from steersman.api.resource.v1 import ResourceClaimTemplate
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.resource.defaults import set_claim_defaults
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy


def set_defaults(template: ResourceClaimTemplate) -> None:
    """Those of a claim."""
    set_claim_defaults(template.spec.spec)


class ResourceClaimTemplateStrategy(Strategy[ResourceClaimTemplate]):
    pass


RESOURCE_CLAIM_TEMPLATES = Resource(
    kind=ResourceClaimTemplate,
    group="resource.k8s.io",
    plural="resourceclaimtemplates",
    strategy=ResourceClaimTemplateStrategy(),
    name_validator=name_is_dns_subdomain,
    default=set_defaults,
    returns_deleted_object=True,
    storage_version_hash="TuzjC49aUfM=",
)
