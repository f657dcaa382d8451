"""Change of an object by somebody else, so that the server itself refuses an update of its older version."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Final

from steersman.authentication.user import SYSTEM_MASTERS, UserInfo
from steersman.client.api_resource import APIResource
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
    is_namespaced = (action.group, action.resource) != ("", "namespaces")
    resource = APIResource(action.group, action.version, action.resource, "", dict, namespaced=is_namespaced)
    body = json.dumps({"metadata": {"annotations": {TOUCHED: str(next(_numbers))}}})
    await client.request("PATCH", resource.path(action.namespace, name), body.encode(), media=MERGE_PATCH)
