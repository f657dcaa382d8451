"""ResourceClaims: requests of pods for devices, and their allocation."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.resource.v1 import (
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.printing.internal_form import internal_text
from steersman.registry.resource.admin_access import AdminAccessStrategy
from steersman.registry.resource.claim_status_validation import DeviceId, device_id, validate_claim_status
from steersman.registry.resource.claim_validation import validate_device_claim
from steersman.registry.resource.defaults import set_claim_defaults, set_toleration_defaults
from steersman.registry.resource.selector_verdicts import NO_VERDICTS, SelectorInquiry, claim_selectors
from steersman.registry.resource.status_rights import missing_permissions
from steersman.registry.services import Services
from steersman.rest.allocator import Inquiry
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource


def set_defaults(claim: ResourceClaim) -> None:
    """Set the defaults of a claim: one device for each request."""
    set_claim_defaults(claim.spec)
    if claim.status.allocation is not None:
        for result in claim.status.allocation.devices.results:
            set_toleration_defaults(result.tolerations)


class ResourceClaimInquiry(SelectorInquiry[ResourceClaim]):
    """The check of selectors of new claims; the selectors of a claim never change."""

    async def look_up(self, ctx: Context, new: ResourceClaim, old: ResourceClaim | None) -> None:
        if old is None:
            await self.check(ctx, claim_selectors(new.spec.devices))


class ResourceClaimStrategy(AdminAccessStrategy[ResourceClaim]):
    resets = ("status",)

    def validate(self, ctx: Context, claim: ResourceClaim) -> Iterator[FieldError]:
        yield from self.validate_admin_access(claim.spec.devices, claim.metadata.namespace)
        yield from validate_device_claim(claim.spec.devices, Path("spec", "devices"), ctx.inquiry_result or NO_VERDICTS)

    def validate_update(self, ctx: Context, new: ResourceClaim, old: ResourceClaim) -> Iterator[FieldError]:
        if new.spec != old.spec:
            yield invalid(Path("spec"), internal_text(new.spec), FIELD_IMMUTABLE)


class ResourceClaimStatusInquiry(Inquiry[ResourceClaim]):
    """The check of the permissions of a user who writes a status."""

    def __init__(self, services: Services) -> None:
        self._authorizer = services.authorizer

    async def look_up(self, ctx: Context, new: ResourceClaim, old: ResourceClaim | None) -> None:
        assert old is not None  # a status is only updated
        _drop_deallocated_devices(new, old)
        ctx.inquiry_result = await missing_permissions(self._authorizer, ctx, new, old)


class ResourceClaimStatusStrategy(AdminAccessStrategy[ResourceClaim]):
    resets = ("spec", "metadata")

    def prepare_for_update(self, ctx: Context, new: ResourceClaim, old: ResourceClaim) -> None:
        super().prepare_for_update(ctx, new, old)
        _drop_deallocated_devices(new, old)

    def validate_update(self, ctx: Context, new: ResourceClaim, old: ResourceClaim) -> Iterator[FieldError]:
        yield from self.validate_admin_results(_results(new), _results(old), new.metadata.namespace)
        yield from ctx.inquiry_result or ()
        yield from validate_claim_status(new, old)


def _results(claim: ResourceClaim) -> list[DeviceRequestAllocationResult]:
    allocation = claim.status.allocation
    return [] if allocation is None else allocation.devices.results


def _allocated(claim: ResourceClaim) -> set[DeviceId]:
    return {device_id(each) for each in _results(claim)}


def _drop_deallocated_devices(new: ResourceClaim, old: ResourceClaim) -> None:
    """Drop the drivers' statuses of devices that are no longer allocated to the claim."""
    gone = _allocated(old) - _allocated(new)
    if gone:
        new.status.devices = [device for device in new.status.devices if device_id(device) not in gone]


def state(claim: ResourceClaim) -> str:
    """Return the state, e.g. `allocated,reserved`."""
    states = ["deleted"] if claim.metadata.deletion_timestamp else []
    if claim.status.allocation is not None:
        states.append("allocated")
        if claim.status.reserved_for:
            states.append("reserved")
    elif not states:
        states.append("pending")
    return ",".join(states)


RESOURCE_CLAIMS = Resource(
    kind=built_in(ResourceClaim, default=set_defaults),
    plural="resourceclaims",
    strategy=ResourceClaimStrategy(),
    inquiry=ResourceClaimInquiry,
    name_validator=name_is_dns_subdomain,
    columns=(
        Column(
            "State",
            state,
            description="A summary of the current state (allocated, pending, reserved, etc.).",
        ),
        AGE,
    ),
    subresources=(
        Subresource(name="status", strategy=ResourceClaimStatusStrategy(), inquiry=ResourceClaimStatusInquiry),
    ),
    returns_deleted_object=True,
    storage_version_hash="wgAZaHcZxUg=",
)
