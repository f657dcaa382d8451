"""ResourceClaimTemplates: templates of claims that are created for each pod."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.resource.v1 import ResourceClaimTemplate
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE
from steersman.machinery.validation.object_meta import name_is_dns_subdomain, validate_annotations
from steersman.machinery.validation.selectors import validate_labels
from steersman.registry.printing.internal_form import internal_text
from steersman.registry.resource.admin_access import AdminAccessStrategy
from steersman.registry.resource.claim_validation import validate_device_claim
from steersman.registry.resource.defaults import set_claim_defaults
from steersman.registry.resource.selector_verdicts import NO_VERDICTS, SelectorInquiry, Verdicts, claim_selectors
from steersman.rest.context import Context
from steersman.rest.resource import Resource


def set_defaults(template: ResourceClaimTemplate) -> None:
    """Set the defaults, which are those of a claim."""
    set_claim_defaults(template.spec.spec)


class ResourceClaimTemplateInquiry(SelectorInquiry[ResourceClaimTemplate]):
    async def look_up(self, ctx: Context, new: ResourceClaimTemplate, old: ResourceClaimTemplate | None) -> None:
        await self.check(ctx, claim_selectors(new.spec.spec.devices))


class ResourceClaimTemplateStrategy(AdminAccessStrategy[ResourceClaimTemplate]):
    def validate(self, ctx: Context, template: ResourceClaimTemplate) -> Iterator[FieldError]:
        yield from self.validate_admin_access(template.spec.spec.devices, template.metadata.namespace)
        yield from _validate(template, ctx.inquiry_result or NO_VERDICTS)

    def validate_update(
        self, ctx: Context, new: ResourceClaimTemplate, old: ResourceClaimTemplate
    ) -> Iterator[FieldError]:
        yield from _validate(new, ctx.inquiry_result or NO_VERDICTS)
        if new.spec != old.spec:
            yield invalid(Path("spec"), internal_text(new.spec), FIELD_IMMUTABLE)


def _validate(template: ResourceClaimTemplate, verdicts: Verdicts) -> Iterator[FieldError]:
    devices, metadata = template.spec.spec.devices, template.spec.metadata
    path = Path("spec", "metadata")
    yield from validate_annotations(metadata.annotations, path / "annotations")
    yield from validate_labels(metadata.labels, path / "labels")
    plain = ObjectMeta()
    for attribute, name in zip(plain.__struct_fields__, plain.__struct_encode_fields__, strict=True):
        allowed = attribute in ("annotations", "labels")
        if not allowed and getattr(metadata, attribute) != getattr(plain, attribute):
            yield forbidden(path / ("uID" if attribute == "uid" else name), "cannot be set")
    yield from validate_device_claim(devices, Path("spec", "spec", "devices"), verdicts)


RESOURCE_CLAIM_TEMPLATES = Resource(
    kind=built_in(ResourceClaimTemplate, default=set_defaults),
    plural="resourceclaimtemplates",
    strategy=ResourceClaimTemplateStrategy(),
    inquiry=ResourceClaimTemplateInquiry,
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    returns_deleted_object=True,
    storage_version_hash="TuzjC49aUfM=",
)
