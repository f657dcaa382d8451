"""The admission contract: plugins that change (`admit`) or refuse (`validate`) what is about to be written.

Follows k8s.io/apiserver `admission`. A plugin says which operations it handles; one that handles none of an operation
costs nothing there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from steersman.authentication.user import UserInfo
from steersman.machinery.errors import GroupKind, GroupResource, StatusError, forbidden

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
CREATE: Final[Operation] = "CREATE"
UPDATE: Final[Operation] = "UPDATE"
DELETE: Final[Operation] = "DELETE"
CONNECT: Final[Operation] = "CONNECT"


@dataclass(slots=True)
class Attributes:
    """One write to be admitted. `obj` and `old` are Structs of the hub version (of the subresource's kind on some
    subresources), None where there is none; plugins of `admit` may change `obj` in place."""

    operation: Operation
    user: UserInfo
    resource: GroupResource
    kind: GroupKind
    version: str
    namespace: str
    name: str
    subresource: str = ""
    obj: Any = None
    old: Any = None
    options: Any = None
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)

    def forbid(self, reason: object) -> StatusError:
        """The 403 of a plugin that refuses (admission.NewForbidden)."""
        name = self.name
        metadata = getattr(self.obj, "metadata", None)
        if metadata is not None:
            name = metadata.name or self.name or (f"{metadata.generate_name}" if metadata.generate_name else "")
        return forbidden(self.resource, name or "Unknown/errorGettingName", reason)

    def warn(self, text: str) -> None:
        """Adds a warning for the client, once."""
        if text not in self.warnings:
            self.warnings.append(text)


class Plugin:
    """One admission plugin; a subclass overrides what it does."""

    name: str = ""
    operations: frozenset[Operation] = frozenset()
    mutates: bool = False
    validates: bool = False

    async def admit(self, attributes: Attributes) -> None:
        """May change `attributes.obj`. Raises StatusError to refuse."""

    async def validate(self, attributes: Attributes) -> None:
        """Raises StatusError to refuse."""


class Chain:
    """All enabled plugins in order."""

    def __init__(self, plugins: tuple[Plugin, ...]) -> None:
        self.plugins = plugins
        self._mutating = {each: self._handling(each, mutating=True) for each in (CREATE, UPDATE, DELETE, CONNECT)}
        self._validating = {each: self._handling(each, mutating=False) for each in (CREATE, UPDATE, DELETE, CONNECT)}

    def _handling(self, operation: Operation, *, mutating: bool) -> tuple[Plugin, ...]:
        return tuple(
            plugin
            for plugin in self.plugins
            if operation in plugin.operations and (plugin.mutates if mutating else plugin.validates)
        )

    def handles(self, operation: Operation) -> bool:
        """Whether any plugin looks at this operation at all."""
        return bool(self._mutating[operation] or self._validating[operation])

    async def admit(self, attributes: Attributes) -> None:
        """Lets every mutating plugin change the object, in order."""
        for plugin in self._mutating[attributes.operation]:
            await plugin.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Asks every validating plugin, in order; the first refusal ends it."""
        for plugin in self._validating[attributes.operation]:
            await plugin.validate(attributes)
