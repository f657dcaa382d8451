"""What a strategy, a store or an admission plugin may know of the request it works for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from steersman.authentication.user import UserInfo
from steersman.machinery.slow_lane import SlowLane

ANONYMOUS = UserInfo("system:anonymous", groups=("system:unauthenticated",))
LOOPBACK = UserInfo("system:apiserver", groups=("system:masters",))


@dataclass(slots=True)
class Context:
    """The request as far as the floors below HTTP see it.

    `namespace` and `name` come from the URL; `name` is empty on create. `dry_run` goes the whole way but the commit.
    `warnings` are sent to the client as Warning headers. `found` is what a strategy's `before_create` or
    `before_update` found out for its own validation, which cannot wait. `lane` is where work on the object is to be
    done if it is large, None if it is not.
    """

    user: UserInfo = ANONYMOUS
    namespace: str = ""
    name: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    verb: str = ""
    dry_run: bool = False
    field_manager: str = ""
    warnings: list[str] = field(default_factory=list)
    found: Any = None
    lane: SlowLane | None = None

    def warn(self, text: str) -> None:
        """Adds a warning for the client, once."""
        if text not in self.warnings:
            self.warnings.append(text)


def loopback(namespace: str = "", name: str = "") -> Context:
    """The server's own context, for what it writes by itself."""
    return Context(user=LOOPBACK, namespace=namespace, name=name)
