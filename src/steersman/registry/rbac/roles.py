"""Roles: rights on the objects of one namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.rbac.v1 import Role
from steersman.kinds.built_in import built_in
from steersman.machinery.field import FieldError
from steersman.registry.columns import CREATED_AT
from steersman.registry.rbac.escalation import EscalationCheck, only_garbage_collection_changes
from steersman.registry.rbac.validation import rbac_name, validate_rules
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.rest.strategy import Release, Strategy


class RoleStrategy(Strategy[Role]):
    allow_create_on_update = True

    def __init__(self, check: EscalationCheck | None = None) -> None:
        self._check = check

    def bind(self, services: Services) -> RoleStrategy:
        return RoleStrategy(EscalationCheck(services))

    async def before_create(self, ctx: Context, obj: Role) -> Release | None:
        if self._check is not None:
            await self._check.confirm_role(ctx, "roles", obj.metadata.name, obj.rules or ())
        return None

    async def before_update(self, ctx: Context, new: Role, old: Role) -> Release | None:
        if only_garbage_collection_changes(new, old):
            return None
        return await self.before_create(ctx, new)

    def validate(self, ctx: Context, obj: Role) -> Iterator[FieldError]:
        return validate_rules(obj.rules or (), namespaced=True)

    def validate_update(self, ctx: Context, new: Role, old: Role) -> Iterator[FieldError]:
        return self.validate(ctx, new)


ROLES: Final = Resource(
    kind=built_in(Role),
    plural="roles",
    strategy=RoleStrategy(),
    name_validator=rbac_name,
    revalidates_metadata=True,
    columns=(CREATED_AT,),
    storage_version_hash="7FuwZcIIItM=",
)
