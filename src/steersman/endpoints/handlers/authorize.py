"""Authorization inside a verb: an update that turns out to be a create needs the right to create."""

from __future__ import annotations

import dataclasses

from steersman.authorization.forbidden import forbidden_error
from steersman.authorization.interface import decide
from steersman.endpoints.filters.authorization import request_attributes
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope


async def authorize_create(scope: Scope, request: Request) -> None:
    """Raises StatusError 403 unless the user may also create what this request would create."""
    attributes = dataclasses.replace(request_attributes(request), verb="create", subresource="")
    verdict = await decide(scope.shared.authorizer, attributes)
    if not verdict.allowed:
        raise forbidden_error(attributes, verdict.reason)
