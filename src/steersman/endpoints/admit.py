"""Between a handler and the admission chain: attributes made from a request, checks made for a store."""

from __future__ import annotations

from functools import partial
from typing import Any

from steersman.admission.interface import CREATE, DELETE, UPDATE, Attributes, Operation
from steersman.endpoints.ownership import deduplicate_owners
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.large_work.slow_lane import done
from steersman.rest.capabilities import CheckCreate, CheckDelete, CheckUpdate
from steersman.rest.context import Context


def attributes(
    scope: Scope, request: Request, ctx: Context, operation: Operation, *, obj: Any = None, old: Any = None,
    name: str = "", options: Any = None, kind: GroupVersionKind | None = None,
) -> Attributes:  # fmt: skip
    """What the plugins are to judge. `name` is that of the URL unless given, `kind` that of the resource."""
    action = request.action
    return Attributes(
        operation, request.user, action, kind or scope.gvk, name or action.name, obj, old, options, ctx.dry_run,
        request.warnings, ctx.lane,
    )  # fmt: skip


async def admit(
    scope: Scope, request: Request, ctx: Context, operation: Operation, obj: Any, old: Any | None, options: Any
) -> Any:
    """Mutating admission of an object that is to be stored: it, or what a plugin has put in its place."""
    chain = scope.shared.admission
    if chain.handles(operation):
        record = attributes(scope, request, ctx, operation, obj=obj, old=old, name=obj.metadata.name, options=options)
        await chain.admit(record)
        obj = record.obj
    if obj.metadata.owner_references:
        await done(ctx.lane, partial(deduplicate_owners, request, obj, after_admission=True))
    return obj


def check_create(scope: Scope, request: Request, ctx: Context, options: Any) -> CheckCreate | None:
    """Validating admission of a create, for the store to call; None if nobody looks."""
    chain = scope.shared.admission
    if not chain.handles(CREATE):
        return None

    async def check(obj: Any) -> None:
        await chain.validate(attributes(scope, request, ctx, CREATE, obj=obj, name=obj.metadata.name, options=options))

    return check


def check_update(
    scope: Scope, request: Request, ctx: Context, options: Any, kind: GroupVersionKind | None = None
) -> CheckUpdate | None:
    """Validating admission of an update, for the store to call; None if nobody looks. See `attributes` for `kind`."""
    chain = scope.shared.admission
    if not chain.handles(UPDATE):
        return None

    async def check(new: Any, old: Any) -> None:
        record = attributes(scope, request, ctx, UPDATE, obj=new, old=old, options=options, kind=kind)
        await chain.validate(record)

    return check


def check_delete(scope: Scope, request: Request, ctx: Context, options: Any) -> CheckDelete | None:
    """Admission of a delete, for the store to call; None if nobody looks. Of a collection no object has a name."""
    chain = scope.shared.admission
    if not chain.handles(DELETE):
        return None

    async def check(old: Any) -> None:
        record = attributes(scope, request, ctx, DELETE, old=old, options=options)
        await chain.admit(record)
        await chain.validate(record)

    return check
