"""ServiceCIDRs: ranges from which addresses of Services are allocated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.networking.v1 import ServiceCIDR, ServiceCIDRSpec
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.validation.ip import is_valid_cidr, parse_cidr_sloppy
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.printing.go_struct import go_struct
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

_CIDRS: Final = Path("spec", "cidrs")


def _validate_spec(spec: ServiceCIDRSpec) -> Iterator[FieldError]:
    cidrs = spec.cidrs
    if not cidrs:
        yield required(_CIDRS, "at least one CIDR required")
        return
    if len(cidrs) > 2:
        yield invalid(_CIDRS, go_struct(CIDRs=cidrs), "may only hold up to 2 values")
        return
    for index, cidr in enumerate(cidrs):
        yield from is_valid_cidr(cidr, _CIDRS[index])
    parsed = [parse_cidr_sloppy(cidr) for cidr in cidrs]
    families = [each[1].version for each in parsed if each is not None]
    if len(families) == 2 and families[0] == families[1]:
        detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        yield invalid(_CIDRS, cidrs, detail)


class ServiceCIDRStrategy(Strategy[ServiceCIDR]):
    resets = ("status",)

    def validate(self, ctx: Context, obj: ServiceCIDR) -> Iterator[FieldError]:
        return _validate_spec(obj.spec)

    def validate_update(self, ctx: Context, new: ServiceCIDR, old: ServiceCIDR) -> Iterator[FieldError]:
        """Forbid changes of a range, except for adding one of the other family."""
        before, after = old.spec.cidrs, new.spec.cidrs
        if len(before) == len(after):
            for index, (was, is_) in enumerate(zip(before, after, strict=True)):
                if was != is_:
                    yield invalid(_CIDRS[index], is_, FIELD_IMMUTABLE)
        elif len(before) == 1 and len(after) == 2:
            if before[0] != after[0]:
                yield invalid(_CIDRS[0], after[0], FIELD_IMMUTABLE)
            yield from _validate_spec(new.spec)
        else:
            yield invalid(_CIDRS, after or None, FIELD_IMMUTABLE)


class ServiceCIDRStatusStrategy(StatusStrategy[ServiceCIDR]):
    resets = ("spec", "metadata")


SERVICE_CIDRS: Final = Resource(
    kind=built_in(ServiceCIDR),
    plural="servicecidrs",
    namespaced=False,
    strategy=ServiceCIDRStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(Column("CIDRs", lambda c: ",".join(c.spec.cidrs)), AGE),
    subresources=(Subresource(name="status", strategy=ServiceCIDRStatusStrategy()),),
    storage_version_hash="gNLvruQhW2g=",
)
