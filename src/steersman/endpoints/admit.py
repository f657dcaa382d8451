"""Between a handler and the admission chain: what the plugins are to judge of a request."""

from __future__ import annotations

from typing import Any

from steersman.admission.interface import DELETE, Attributes, Operation
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.rest.capabilities import CheckDelete
from steersman.rest.context import Context


def attributes(
    scope: Scope, request: Request, ctx: Context, operation: Operation, *, old: Any = None, options: Any = None
) -> Attributes:
    """Return the attributes that plugins judge of a request that stores nothing new."""
    action = request.action
    return Attributes(
        operation,
        request.user,
        action,
        scope.gvk,
        action.name,
        None,
        old,
        options,
        ctx.dry_run,
        request.warnings,
        request.audit,
    )


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
