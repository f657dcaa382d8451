"""PodTemplates: stored templates of pods, for use by custom controllers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Final, Self

from steersman.api.core.v1 import PodTemplate
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.core.pods.columns import POD_TEMPLATE_COLUMNS
from steersman.registry.pod_template.defaults import set_pod_template_defaults
from steersman.registry.pod_template.fields import drop_disabled_template_fields
from steersman.registry.pod_template.validation.leniency import pod_template_options
from steersman.registry.pod_template.validation.pods import validate_pod_template_spec
from steersman.registry.pod_template.warnings import warnings_for_pod_template
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy

_TEMPLATE: Final = Path("template")


class PodTemplateStrategy(Strategy[PodTemplate, Services]):
    allow_privileged: bool = True
    bumps_generation_on = ("template",)

    def bind(self, services: Services) -> Self:
        bound = copy.copy(self)
        bound.allow_privileged = services.allow_privileged
        return bound

    def prepare_for_create(self, ctx: Context, obj: PodTemplate) -> None:
        super().prepare_for_create(ctx, obj)
        drop_disabled_template_fields(obj.template, None)

    def validate(self, ctx: Context, obj: PodTemplate) -> Iterator[FieldError]:
        options = pod_template_options(None, allow_privileged=self.allow_privileged)
        return validate_pod_template_spec(obj.template, _TEMPLATE, options)

    def warnings(self, ctx: Context, obj: PodTemplate) -> Iterator[str]:
        return warnings_for_pod_template(obj.template, _TEMPLATE)

    def prepare_for_update(self, ctx: Context, new: PodTemplate, old: PodTemplate) -> None:
        drop_disabled_template_fields(new.template, old.template)
        super().prepare_for_update(ctx, new, old)

    def validate_update(self, ctx: Context, new: PodTemplate, old: PodTemplate) -> Iterator[FieldError]:
        options = pod_template_options(old.template, allow_privileged=self.allow_privileged)
        return validate_pod_template_spec(new.template, _TEMPLATE, options)


POD_TEMPLATES: Final = Resource(
    kind=built_in(PodTemplate, default=lambda obj: set_pod_template_defaults(obj.template)),
    plural="podtemplates",
    strategy=PodTemplateStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=POD_TEMPLATE_COLUMNS,
    storage_version_hash="LIXB2x4IFpk=",
    returns_deleted_object=True,
)
