"""The admission contract: plugins that change (`admit`) or refuse (`validate`) what is about to be written.

Follows k8s.io/apiserver `admission`. A plugin says which operations it handles; one that handles none of an operation
costs nothing there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from steersman.audit.policy import Level
from steersman.audit.trail import Trail
from steersman.authentication.user import UserInfo
from steersman.machinery.errors.status import StatusError, forbidden
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.machinery.validation.formats import is_dns1123_subdomain, is_qualified_name

logger = logging.getLogger(__name__)

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
CREATE: Final[Operation] = "CREATE"
UPDATE: Final[Operation] = "UPDATE"
DELETE: Final[Operation] = "DELETE"
CONNECT: Final[Operation] = "CONNECT"

MOST_WARNINGS: Final = 1_024
"""That plugins have for one request: of as many the client is told the first 4,096 characters."""


class Reinvocation:
    """What plugins that change objects by rules of users keep of one write, as they may be asked twice: once all have
    been asked, those are again whose object was changed after them (k8s.io/apiserver `ReinvocationContext`)."""

    __slots__ = ("is_second", "kept", "wanted")

    def __init__(self) -> None:
        self.wanted = False
        """Whether all are to be asked again."""
        self.is_second = False
        """Whether they are."""
        self.kept: dict[str, Any] = {}
        """By plugin, what it wants to know then."""


@dataclass(slots=True)
class Attributes:
    """One write to be admitted.

    `action` is that of the request. `kind` is that of `obj` and `old`, which are of the stored version, or of a
    subresource's own kind (Scale, Binding, Eviction); None where there is none. Plugins of `admit` may change `obj`, or
    put another object in its place. `name` is that of the URL, or of a new object; empty where it has none yet, and for
    a collection. A plugin gives what takes longer the larger the object is to `work.offloading.offload`.
    """

    operation: Operation
    user: UserInfo
    action: Action
    kind: GroupVersionKind
    name: str
    obj: Any = None
    old: Any = None
    options: Any = None
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    audit: Trail | None = None
    """What is recorded of the request; None for nothing."""
    annotations: dict[str, str] | None = None
    """What plugins have told of this write; None if that is nothing."""
    _reinvocation: Reinvocation | None = None
    _answers: dict[Any, Any] | None = None

    @property
    def answers(self) -> dict[Any, Any]:
        """What the authorizer has answered expressions about this request, by what it was asked."""
        if self._answers is None:
            self._answers = {}
        return self._answers

    @property
    def reinvocation(self) -> Reinvocation:
        """See there."""
        if self._reinvocation is None:
            self._reinvocation = Reinvocation()
        return self._reinvocation

    @property
    def is_wanted_again(self) -> bool:
        """Whether mutating plugins are to be asked once more."""
        found = self._reinvocation
        return found is not None and found.wanted and not found.is_second

    def forbid(self, reason: object) -> StatusError:
        """The 403 of a plugin that refuses (admission.NewForbidden)."""
        return forbidden(self.action.group_resource, self.name or _own_name(self.obj), reason)

    def annotate(self, key: str, value: str, level: Level = Level.METADATA) -> None:
        """Tells the audit something, where that records so much; what was said first under a key counts. A key that is
        no qualified name with a prefix is left out."""
        if why := _key_errors(key):
            logger.warning('Failed to set admission audit annotation "%s": %s', key, why)
            return
        if self.annotations is None:
            self.annotations = {}
        before = self.annotations.setdefault(key, value)
        if before != value:
            logger.warning('admission annotations are not allowed to be overwritten, key: "%s"', key)
        elif self.audit is not None:
            self.audit.annotate(key, value, level)

    def warn(self, *texts: str) -> None:
        """Adds warnings for the client, each once, as long as there are not more than can be sent."""
        known = set(self.warnings)
        for text in texts:
            if len(self.warnings) >= MOST_WARNINGS:
                return
            if text not in known:
                known.add(text)
                self.warnings.append(text)


def _key_errors(key: str) -> str:
    prefix, slash, _ = key.partition("/")
    if not slash:
        return "a prefix is needed"
    return "; ".join(is_dns1123_subdomain(prefix) or is_qualified_name(key))


def _own_name(obj: Any) -> str:
    """The name of an object whose request does not say it, which may have none yet."""
    metadata = getattr(obj, "metadata", None)
    if metadata is None:
        return "Unknown" if obj is None else "Unknown/errorGettingName"
    return metadata.name or metadata.generate_name or "Unknown"


class Plugin:
    """One admission plugin; a subclass overrides what it does."""

    name: str = ""
    operations: frozenset[Operation] = frozenset()
    resources: frozenset[GroupResource] | None = None
    """Those that it looks at, None for all: of others it is not asked."""
    mutates: bool = False
    validates: bool = False

    async def admit(self, attributes: Attributes) -> None:
        """May change `attributes.obj`. Raises StatusError to refuse."""

    async def validate(self, attributes: Attributes) -> None:
        """Raises StatusError to refuse."""

    def close(self) -> None:
        """Lets go of what it holds; it is not asked any more."""


class Chain:
    """All enabled plugins in order."""

    def __init__(self, plugins: tuple[Plugin, ...]) -> None:
        self.plugins = plugins
        self._mutating = {each: self._handling(each, mutating=True) for each in (CREATE, UPDATE, DELETE, CONNECT)}
        self._validating = {each: self._handling(each, mutating=False) for each in (CREATE, UPDATE, DELETE, CONNECT)}

    def _handling(self, operation: Operation, *, mutating: bool) -> _Handling:
        return _Handling(
            tuple(
                plugin
                for plugin in self.plugins
                if operation in plugin.operations and (plugin.mutates if mutating else plugin.validates)
            )
        )

    def handles(self, operation: Operation) -> bool:
        """Whether any plugin looks at this operation at all."""
        return bool(self._mutating[operation].plugins or self._validating[operation].plugins)

    def close(self) -> None:
        """Lets all plugins go of what they hold."""
        for plugin in self.plugins:
            plugin.close()

    async def admit(self, attributes: Attributes) -> None:
        """Lets every mutating plugin change the object, in order; and once more where one asks for that."""
        plugins = self._mutating[attributes.operation].of(attributes.action)
        for plugin in plugins:
            await plugin.admit(attributes)
        if attributes.is_wanted_again:
            attributes.reinvocation.is_second = True
            for plugin in plugins:
                await plugin.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Asks every validating plugin, in order; the first refusal ends it."""
        for plugin in self._validating[attributes.operation].of(attributes.action):
            await plugin.validate(attributes)


class _Handling:
    """The plugins for an operation, found by resource; most resources are named by none of them."""

    __slots__ = ("_named", "_usual", "plugins")

    def __init__(self, plugins: tuple[Plugin, ...]) -> None:
        self.plugins = plugins
        self._usual = tuple(plugin for plugin in plugins if plugin.resources is None)
        # by name and then by group: looking up their text costs less than hashing both together
        self._named: dict[str, dict[str, tuple[Plugin, ...]]] = {}
        for resource in {each for plugin in plugins for each in plugin.resources or ()}:
            self._named.setdefault(resource.resource, {})[resource.group] = tuple(
                plugin for plugin in plugins if plugin.resources is None or resource in plugin.resources
            )

    def of(self, action: Action) -> tuple[Plugin, ...]:
        groups = self._named.get(action.resource)
        return self._usual if groups is None else groups.get(action.group, self._usual)
