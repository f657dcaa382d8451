"""Between a handler and the admission chain: attributes made from a request, checks made for a store."""

from __future__ import annotations

from typing import Any

from steersman.admission.interface import CREATE, DELETE, UPDATE, Attributes, Operation
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.rest.capabilities import CheckCreate, CheckDelete, CheckUpdate


def attributes(
    scope: Scope, request: Request, operation: Operation, *, obj: Any = None, old: Any = None, name: str = "",
    options: Any = None, dry_run: bool = False,
) -> Attributes:  # fmt: skip
    """What the plugins are to judge. `name` is that of the URL unless given."""
    target = request.target
    return Attributes(
        operation, request.user, scope.group_resource, scope.group_kind, scope.version, target.namespace,
        name or target.name, target.subresource, obj, old, options, dry_run, request.warnings,
    )  # fmt: skip


def check_create(scope: Scope, request: Request, options: Any, *, dry_run: bool) -> CheckCreate | None:
    """Validating admission of a create, for the store to call; None if nobody looks."""
    chain = scope.shared.admission
    if not chain.handles(CREATE):
        return None

    async def check(obj: Any) -> None:
        name = obj.metadata.name
        await chain.validate(attributes(scope, request, CREATE, obj=obj, name=name, options=options, dry_run=dry_run))

    return check


def check_update(scope: Scope, request: Request, options: Any, *, dry_run: bool) -> CheckUpdate | None:
    """Validating admission of an update, for the store to call; None if nobody looks."""
    chain = scope.shared.admission
    if not chain.handles(UPDATE):
        return None

    async def check(new: Any, old: Any) -> None:
        await chain.validate(attributes(scope, request, UPDATE, obj=new, old=old, options=options, dry_run=dry_run))

    return check


def check_delete(scope: Scope, request: Request, options: Any, *, dry_run: bool) -> CheckDelete | None:
    """Admission of a delete, for the store to call; None if nobody looks."""
    chain = scope.shared.admission
    if not chain.handles(DELETE):
        return None

    async def check(old: Any) -> None:
        record = attributes(scope, request, DELETE, old=old, name=old.metadata.name, options=options, dry_run=dry_run)
        await chain.admit(record)
        await chain.validate(record)

    return check
