"""Between a handler and the admission chain: what the plugins are to judge of a request."""

from __future__ import annotations

from typing import Any

from steersman.admission.interface import DELETE, Attributes, Operation
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.rest.capabilities import CheckDelete
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
