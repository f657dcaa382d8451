"""Recognition of node users (kubernetes `pkg/auth/nodeidentifier`)."""

from __future__ import annotations

from typing import Final

from steersman.authentication.user import NODES, UserInfo

PREFIX: Final = "system:node:"


def node_name(user: UserInfo) -> str | None:
    """Return the node of which `user` is the kubelet, or None for other users. Returns "" if the node's name is
    empty.
    """
    name = user.name
    if not name.startswith(PREFIX) or NODES not in user.groups:
        return None
    return name.removeprefix(PREFIX)
