"""Roles: permissions on the objects of one namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.rbac.v1 import Role
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError
from steersman.registry.columns import CREATED_AT
from steersman.registry.rbac.escalation import EscalationCheck, only_garbage_collection_changes
from steersman.registry.rbac.validation import rbac_name, validate_rules
from steersman.registry.services import Services
from steersman.rest.allocator import Inquiry
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.rest.strategy import Strategy


class RoleInquiry(Inquiry[Role]):
    """The escalation check of Roles: a user who writes a role must hold its permissions."""

    def __init__(self, services: Services) -> None:
        self._check = EscalationCheck(services)

    async def look_up(self, ctx: Context, new: Role, old: Role | None) -> None:
        if old is None or not only_garbage_collection_changes(new, old):
            await self._check.confirm_role(ctx, "roles", new.metadata.name, new.rules or ())


class RoleStrategy(Strategy[Role]):
    allow_create_on_update = True

    def validate(self, ctx: Context, obj: Role) -> Iterator[FieldError]:
        return validate_rules(obj.rules or (), namespaced=True)

    def validate_update(self, ctx: Context, new: Role, old: Role) -> Iterator[FieldError]:
        return self.validate(ctx, new)


ROLES: Final = Resource(
    kind=built_in(Role),
    plural="roles",
    strategy=RoleStrategy(),
    inquiry=RoleInquiry,
    name_validator=rbac_name,
    revalidates_metadata=True,
    columns=(CREATED_AT,),
    storage_version_hash="7FuwZcIIItM=",
)
