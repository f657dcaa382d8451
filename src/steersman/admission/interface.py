"""The admission contract: plugins that change (`admit`) or refuse (`validate`) what is about to be written.

Follows k8s.io/apiserver `admission`. A plugin says which writes it handles, and whether there is anything to do for it
now; writes that it has nothing to do with do not go through it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct, field

from steersman.audit.policy import Level
from steersman.audit.trail import Trail
from steersman.authentication.user import UserInfo
from steersman.machinery.errors.status import StatusError, forbidden
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.machinery.validation.formats import is_dns1123_subdomain, is_qualified_name
from steersman.work.bounded_cache import BoundedCache

logger = logging.getLogger(__name__)

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
CREATE: Final[Operation] = "CREATE"
UPDATE: Final[Operation] = "UPDATE"
DELETE: Final[Operation] = "DELETE"
CONNECT: Final[Operation] = "CONNECT"

OBJECT_ALONE: Final = frozenset({""})
"""The subresources of a plugin that looks at writes of whole objects."""

MOST_WARNINGS: Final = 1_024
"""That plugins have for one request: of as many the client is told the first 4,096 characters."""
_MOST_CHAINS: Final = 1_024
"""Kinds of writes whose plugins are remembered."""


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


class KnownNamespace:
    """The parts of one state of a namespace that plugins judge by."""

    __slots__ = ("labels", "phase", "pod_security")

    def __init__(self, phase: str, labels: Mapping[str, str] = MappingProxyType({})) -> None:
        self.phase: Final = phase
        self.labels: Final = labels
        self.pod_security: Any = None
        """Policy that PodSecurity has read out of the labels, None before it has."""


class Attributes(Struct):
    """One write to be admitted.

    `action` is that of the request. `kind` is that of `obj` and `old`, which are of the stored version, or of a
    subresource's own kind (Scale, Binding, Eviction); None where there is none. Plugins of `admit` may change `obj`, or
    put another object in its place. `name` is that of the URL, or of a new object; empty where it has none yet, and for
    a collection. `namespace` is the state of its namespace that the request is judged by, None until a plugin has
    looked. A plugin gives what takes longer the larger the object is to `work.offloading.offload`.
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
    namespace: KnownNamespace | None = None
    reinvoked: Reinvocation | None = None
    """The `reinvocation`, once a plugin has asked for it."""
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
        if self.reinvoked is None:
            self.reinvoked = Reinvocation()
        return self.reinvoked

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
    """The resources that it looks at, None for all."""
    subresources: frozenset[str] | None = None
    """The subresources that it looks at, None for all; "" is the object itself."""
    mutates: bool = False
    validates: bool = False
    _followers: tuple[Callable[[], None], ...] = ()

    async def admit(self, attributes: Attributes) -> None:
        """May change `attributes.obj`. Raises StatusError to refuse."""

    async def validate(self, attributes: Attributes) -> None:
        """Raises StatusError to refuse."""

    def has_work(self, writes: Writes, *, mutating: bool) -> bool:
        """Return False while the plugin does nothing with any object of such writes: it is not in their chain then.

        Only asked about writes that its operations, resources and subresources name. A plugin whose answer changes calls
        `work_changed`, and must not answer False before it knows.
        """
        return True

    def follow(self, changed: Callable[[], None]) -> None:
        """Have `changed` called whenever `has_work` may answer otherwise than before."""
        self._followers = (*self._followers, changed)

    def work_changed(self) -> None:
        """Have the chains that the plugin is in put together anew."""
        for changed in self._followers:
            changed()

    def close(self) -> None:
        """Lets go of what it holds; it is not asked any more."""


class Writes(NamedTuple):
    """The writes that go through one chain."""

    operation: Operation
    resource: str
    group: str
    subresource: str


class _Steps(NamedTuple):
    """Plugins that are called for one write, in order."""

    admit: tuple[Callable[[Attributes], Awaitable[None]], ...]
    validate: tuple[Callable[[Attributes], Awaitable[None]], ...]


class Chain:
    """All enabled plugins in order.

    A write is shown to those only that have something to do with its kind. They are found with the first such write,
    and again when a plugin says that something has changed.
    """

    def __init__(self, plugins: tuple[Plugin, ...]) -> None:
        self.plugins = plugins
        self._handled = frozenset(
            operation for plugin in plugins if plugin.mutates or plugin.validates for operation in plugin.operations
        )
        self._steps: BoundedCache[tuple[str, ...], _Steps] = BoundedCache(_MOST_CHAINS)
        for plugin in plugins:
            plugin.follow(self._steps.forget)

    def handles(self, operation: Operation) -> bool:
        """Return True if any plugin looks at this operation at all."""
        return operation in self._handled

    def close(self) -> None:
        """Lets all plugins go of what they hold."""
        for plugin in self.plugins:
            plugin.close()

    async def admit(self, attributes: Attributes) -> None:
        """Lets every mutating plugin change the object, in order; and once more where one asks for that."""
        action = attributes.action
        writes = (attributes.operation, action.resource, action.group, action.subresource)
        steps = self._steps[writes] or self._put_together(Writes(*writes))
        for admit in steps.admit:
            await admit(attributes)
        again = attributes.reinvoked
        if again is not None and again.wanted and not again.is_second:
            again.is_second = True
            for admit in steps.admit:
                await admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Asks every validating plugin, in order; the first refusal ends it."""
        action = attributes.action
        writes = (attributes.operation, action.resource, action.group, action.subresource)
        steps = self._steps[writes] or self._put_together(Writes(*writes))
        for validate in steps.validate:
            await validate(attributes)

    def _put_together(self, writes: Writes) -> _Steps:
        asked = [
            plugin
            for plugin in self.plugins
            if writes.operation in plugin.operations
            and (plugin.resources is None or GroupResource(writes.group, writes.resource) in plugin.resources)
            and (plugin.subresources is None or writes.subresource in plugin.subresources)
        ]
        steps = _Steps(
            tuple(each.admit for each in asked if each.mutates and each.has_work(writes, mutating=True)),
            tuple(each.validate for each in asked if each.validates and each.has_work(writes, mutating=False)),
        )
        self._steps.keep(writes, steps)
        return steps
