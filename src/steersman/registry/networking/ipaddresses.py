"""IPAddresses: an object for each address of a Service, which prevents its allocation to another Service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from steersman.api.networking.v1 import IPAddress, ParentReference
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.formats import is_dns1123_subdomain, is_path_segment_name
from steersman.machinery.validation.ip import is_valid_ip
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE, validate_with
from steersman.registry.printing.go_struct import go_struct
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy

_PARENT: Final = Path("spec", "parentRef")


def ip_address_name(name: str, prefix: bool) -> list[str]:
    """Return the errors of a name, which must be an address in canonical form."""
    return [error.detail for error in is_valid_ip(name, Path())]


def _validate_parent(parent: ParentReference | None) -> Iterator[FieldError]:
    if parent is None:
        yield required(_PARENT)
        return
    if parent.group:
        yield from validate_with(is_dns1123_subdomain, parent.group, _PARENT / "group")
    for name, value, needed in (
        ("resource", parent.resource, True),
        ("name", parent.name, True),
        ("namespace", parent.namespace, False),
    ):
        if value:
            yield from validate_with(is_path_segment_name, value, _PARENT / name)
        elif needed:
            yield required(_PARENT / name)


class IPAddressStrategy(Strategy[IPAddress]):
    def validate(self, ctx: Context, obj: IPAddress) -> Iterator[FieldError]:
        return _validate_parent(obj.spec.parent_ref)

    def validate_update(self, ctx: Context, new: IPAddress, old: IPAddress) -> Iterator[FieldError]:
        parent = new.spec.parent_ref
        yield from _validate_parent(parent)
        if parent != old.spec.parent_ref:
            value = parent and go_struct(
                Group=parent.group, Resource=parent.resource, Namespace=parent.namespace, Name=parent.name
            )
            yield invalid(_PARENT, value, FIELD_IMMUTABLE)


def _parent_text(address: IPAddress) -> str:
    parent = address.spec.parent_ref
    if parent is None:
        return "<none>"
    resource = f"{parent.resource}.{parent.group}" if parent.group else parent.resource
    return "/".join(part for part in (to_lower(resource), parent.namespace) if part) + f"/{parent.name}"


IP_ADDRESSES: Final = Resource(
    kind=built_in(IPAddress),
    plural="ipaddresses",
    namespaced=False,
    short_names=("ip",),
    strategy=IPAddressStrategy(),
    name_validator=ip_address_name,
    revalidates_metadata=True,
    columns=(Column("ParentRef", _parent_text), replace(AGE, defined=False)),
    storage_version_hash="3f/plJFChNE=",
)
