"""Authorization inside a verb: an update that turns out to be a create needs the right to create."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.authorization.attributes import Attributes
from steersman.authorization.forbidden import forbidden_error
from steersman.authorization.interface import decide
from steersman.endpoints.admit import check_create
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.rest.capabilities import CheckCreate
from steersman.rest.context import Context


def check_authorized_create(scope: Scope, request: Request, ctx: Context, options: Any) -> CheckCreate:
    """Validating admission of a create by a request to change, for the store to call.

    It comes after the question whether the user may create this as well, and raises StatusError 403 if not.
    """
    validate = check_create(scope, request, ctx, options)

    async def check(obj: Any) -> None:
        create = msgspec.structs.replace(request.action, verb="create", subresource="")
        attributes = Attributes(request.user, create)
        verdict = await decide(scope.shared.authorizer, attributes)
        if not verdict.allowed:
            raise forbidden_error(attributes, verdict.reason)
        if validate is not None:
            await validate(obj)

    return check
