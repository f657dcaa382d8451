"""Change of an object by somebody else, so that the server itself refuses an update of its older version."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from steersman.authentication.user import SYSTEM_MASTERS, UserInfo
from steersman.client.client import MERGE_PATCH, Client
from steersman.client.in_process import InProcessTransport
from steersman.machinery.identity.action import Action

if TYPE_CHECKING:
    from steersman.controlplane.control_plane import ControlPlane

TOUCHED: Final = "stress.steersman.dev/touched"
"""Annotation of an object that was changed; end states are compared without it."""
NAME: Final = "steersman-stress"
"""User and user agent of the requests."""
_numbers = count(1)


def client_of(plane: ControlPlane) -> Client:
    """Return a client of a server in this process, with all rights."""
    assert plane.server is not None
    token = plane.token_of(UserInfo(NAME, groups=(SYSTEM_MASTERS,)))
    return Client(InProcessTransport(plane.server.handler, token), NAME)


async def touch(client: Client, action: Action, name: str) -> None:
    """Change an annotation of an object, whatever subresource the action is about. Raises StatusError, Unreachable."""
    root = f"/apis/{action.group}/{action.version}" if action.group else f"/api/{action.version}"
    is_inside = action.namespace and (action.group, action.resource) != ("", "namespaces")
    namespace = f"/namespaces/{quote(action.namespace)}" if is_inside else ""
    target = f"{root}{namespace}/{action.resource}/{quote(name)}"
    body = json.dumps({"metadata": {"annotations": {TOUCHED: str(next(_numbers))}}})
    await client.request("PATCH", target, body.encode(), media=MERGE_PATCH)
