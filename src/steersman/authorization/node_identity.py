"""Which node a user is (kubernetes `pkg/auth/nodeidentifier`)."""

from __future__ import annotations

from typing import Final

from steersman.authentication.user import NODES, UserInfo

PREFIX: Final = "system:node:"


def node_name(user: UserInfo) -> str | None:
    """The name of the node that `user` is the kubelet of, "" for one without a name; None for who is no node."""
    name = user.name
    if not name.startswith(PREFIX) or NODES not in user.groups:
        return None
    return name.removeprefix(PREFIX)
