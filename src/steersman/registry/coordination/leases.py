"""Leases: the holder of a role, since when and for how long; for leader election and node heartbeats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.coordination.v1 import Lease
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy

_SPEC: Final = Path("spec")


class LeaseStrategy(Strategy[Lease]):
    """The strategy of leases; it drops `strategy` and `preferredHolder` of coordinated leader election, which is off."""

    allow_create_on_update = True
    allow_unconditional_update = False
    metadata_on_update = "twice"

    def prepare_for_create(self, ctx: Context, obj: Lease) -> None:
        obj.spec.strategy = None
        obj.spec.preferred_holder = None

    def validate(self, ctx: Context, obj: Lease) -> Iterator[FieldError]:
        spec = obj.spec
        if spec.lease_duration_seconds is not None and spec.lease_duration_seconds <= 0:
            yield invalid(_SPEC / "leaseDurationSeconds", spec.lease_duration_seconds, "must be greater than 0")
        if spec.lease_transitions is not None and spec.lease_transitions < 0:
            yield invalid(_SPEC / "leaseTransitions", spec.lease_transitions, "must be greater than or equal to 0")
        if spec.preferred_holder and not spec.strategy:
            yield forbidden(_SPEC / "preferredHolder", "may only be specified if `strategy` is defined")

    def prepare_for_update(self, ctx: Context, new: Lease, old: Lease) -> None:
        if old.spec.strategy is None:
            new.spec.strategy = None
        if old.spec.preferred_holder is None:
            new.spec.preferred_holder = None

    def validate_update(self, ctx: Context, new: Lease, old: Lease) -> Iterator[FieldError]:
        return self.validate(ctx, new)


LEASES: Final = Resource(
    kind=built_in(Lease),
    plural="leases",
    strategy=LeaseStrategy(),
    name_validator=name_is_dns_subdomain,
    any_finalizers=True,
    columns=(Column("Holder", lambda lease: lease.spec.holder_identity or ""), AGE),
    storage_version_hash="gqkMMb/YqFM=",
)
