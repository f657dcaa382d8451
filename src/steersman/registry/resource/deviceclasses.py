"""DeviceClasses: groups of devices with common properties, and their configuration."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.resource.v1 import DeviceClass
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.object_meta import name_is_long_name
from steersman.machinery.validation.resource_names import is_extended_resource
from steersman.registry.resource.claim_validation import (
    validate_configuration,
    validate_selector,
)
from steersman.registry.resource.limits import MAX_CONFIGS, MAX_SELECTORS
from steersman.registry.resource.names import validate_items
from steersman.registry.resource.selector_verdicts import NO_VERDICTS, SelectorInquiry
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy


class DeviceClassInquiry(SelectorInquiry[DeviceClass]):
    async def look_up(self, ctx: Context, new: DeviceClass, old: DeviceClass | None) -> None:
        if len(new.spec.selectors) <= MAX_SELECTORS:
            await self.check(ctx, new.spec.selectors, stored=old is not None and _is_stored(new, old))


class DeviceClassStrategy(Strategy[DeviceClass]):
    bumps_generation_on = ("spec",)

    def validate(self, ctx: Context, device_class: DeviceClass) -> Iterator[FieldError]:
        return self._validate(ctx, device_class, stored=False)

    def _validate(self, ctx: Context, device_class: DeviceClass, *, stored: bool) -> Iterator[FieldError]:
        spec, path = device_class.spec, Path("spec")
        yield from validate_items(
            spec.selectors,
            MAX_SELECTORS,
            lambda selector, at: validate_selector(selector, at, ctx.inquiry_result or NO_VERDICTS, stored=stored),
            path / "selectors",
        )
        yield from validate_items(
            spec.config, MAX_CONFIGS, lambda config, at: validate_configuration(config.opaque, at), path / "config"
        )
        name = spec.extended_resource_name
        if name is not None and not is_extended_resource(name):
            yield invalid(path / "extendedResourceName", name, "must be a valid extended resource name")

    def validate_update(self, ctx: Context, new: DeviceClass, old: DeviceClass) -> Iterator[FieldError]:
        return self._validate(ctx, new, stored=_is_stored(new, old))


def _is_stored(new: DeviceClass, old: DeviceClass) -> bool:
    """Return True if the selectors are unchanged, also in their order."""
    return new.spec.selectors == old.spec.selectors


DEVICE_CLASSES = Resource(
    kind=built_in(DeviceClass),
    plural="deviceclasses",
    namespaced=False,
    strategy=DeviceClassStrategy(),
    inquiry=DeviceClassInquiry,
    name_validator=name_is_long_name,
    returns_deleted_object=True,
    storage_version_hash="Yk2PTc1Ybxk=",
)
