"""Admission attributes of requests that store nothing new."""

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
    """Return the admission attributes of a request that stores nothing new."""
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
    """Return the admission check of a delete, which the store calls; None if no plugin handles deletes.

    Objects of a collection have no name in their attributes.
    """
    chain = scope.shared.admission
    if not chain.handles(DELETE):
        return None

    async def check(old: Any) -> None:
        record = attributes(scope, request, ctx, DELETE, old=old, options=options)
        await chain.admit(record)
        await chain.validate(record)

    return check
