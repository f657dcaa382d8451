"""What a strategy, a store or an admission plugin may know of the request it works for."""

from __future__ import annotations

from dataclasses import dataclass, field

from steersman.authentication.user import UserInfo
from steersman.machinery.field import FieldError

ANONYMOUS = UserInfo("system:anonymous", groups=("system:unauthenticated",))
LOOPBACK = UserInfo("system:apiserver", groups=("system:masters",))


@dataclass(slots=True)
class Context:
    """The request as far as the floors below HTTP see it.

    `namespace` and `name` come from the URL; `name` is empty on create. `dry_run` goes the whole way but the commit.
    `warnings` are sent to the client as Warning headers. `refusals` is what a strategy found out before the write is
    validated, as finding it out took waiting; its validation tells them.
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
    refusals: list[FieldError] = field(default_factory=list)

    def warn(self, text: str) -> None:
        """Adds a warning for the client, once."""
        if text not in self.warnings:
            self.warnings.append(text)


def loopback(namespace: str = "", name: str = "") -> Context:
    """The server's own context, for what it writes by itself."""
    return Context(user=LOOPBACK, namespace=namespace, name=name)
