"""The admission interface: plugins that change (`admit`) or refuse (`validate`) a write before it is stored.

Follows k8s.io/apiserver `admission`. A plugin declares the writes it handles, and whether it has any work for them at
the moment; the chain of a write leaves out plugins without work.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from time import monotonic
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct, field

from steersman.admission.changes import Changes, Compared, document, encode
from steersman.audit.policy import Level
from steersman.audit.trail import Trail
from steersman.authentication.user import UserInfo
from steersman.machinery.errors.status import StatusError, forbidden
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.machinery.validation.formats import is_dns1123_subdomain, is_qualified_name
from steersman.tracing.trace import END, Recorder, StepKind, current_recorder
from steersman.work.bounded_cache import BoundedCache

logger = logging.getLogger(__name__)

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
CREATE: Final[Operation] = "CREATE"
UPDATE: Final[Operation] = "UPDATE"
DELETE: Final[Operation] = "DELETE"
CONNECT: Final[Operation] = "CONNECT"

OBJECT_ALONE: Final = frozenset({""})
"""Subresources of a plugin that handles writes of whole objects only."""

MAX_WARNINGS: Final = 1_024
"""Most warnings of plugins for one request. The client receives the first 4,096 characters of them."""
_MAX_CHAINS: Final = 1_024
"""Most kinds of writes whose chains are cached."""


class Reinvocation:
    """State of one write for plugins that may be invoked twice (k8s.io/apiserver `ReinvocationContext`).

    Mutating webhooks and policies are invoked again after the whole chain has run, if another plugin changed the object
    after them.
    """

    __slots__ = ("is_requested", "is_second", "plugin_states")

    def __init__(self) -> None:
        self.is_requested = False
        """True if a plugin requests a second invocation of the chain."""
        self.is_second = False
        """True during the second invocation."""
        self.plugin_states: dict[str, Any] = {}
        """State that a plugin keeps for the second invocation, by the name of the plugin."""


class NamespaceState:
    """The parts of a namespace's state that plugins use.

    A plugin reads the state whenever it needs it, as upstream's do, and keeps none: other plugins of the same write may
    wait for seconds, and a label that is acknowledged meanwhile counts.
    """

    __slots__ = ("labels", "phase", "pod_security")

    def __init__(self, phase: str, labels: Mapping[str, str] = MappingProxyType({})) -> None:
        self.phase: Final = phase
        self.labels: Final = labels
        self.pod_security: Any = None
        """PodSecurity's policy parsed from the labels, None until it is parsed."""


class Attributes(Struct):
    """Admission attributes: one write to be admitted.

    `action` is the action of the request. `kind` is the kind of `obj` and `old`. Both are of the stored version, or of
    a subresource's own kind (Scale, Binding, Eviction), and None where they do not apply. `admit` of a plugin may
    change `obj` or replace it. `name` is the name in the URL or of a new object; it is empty for a generated name and
    for a collection. A plugin runs work that grows with the size of the object by `work.offloading.offload`.
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
    """Audit trail of the request, None if nothing is recorded."""
    annotations: dict[str, str] | None = None
    """Audit annotations that plugins have added for this write, None if there are none."""
    existing_reinvocation: Reinvocation | None = None
    """Value of `reinvocation`, None until a plugin has read that property."""
    _answers: dict[Any, Any] | None = None

    @property
    def authorizer_answers(self) -> dict[Any, Any]:
        """Return the authorizer's verdicts on expressions of this request, by the authorization attributes."""
        if self._answers is None:
            self._answers = {}
        return self._answers

    @property
    def reinvocation(self) -> Reinvocation:
        """Return the state for a second invocation of plugins; the first read creates it."""
        if self.existing_reinvocation is None:
            self.existing_reinvocation = Reinvocation()
        return self.existing_reinvocation

    def forbid(self, reason: object) -> StatusError:
        """Return the StatusError 403 of a plugin that refuses the write (admission.NewForbidden)."""
        return forbidden(self.action.group_resource, self.name or _name_of(self.obj), reason)

    def annotate(self, key: str, value: str, level: Level = Level.METADATA) -> None:
        """Add an audit annotation, recorded from the audit level `level` on. The first value of a key stays.

        A key that is not a qualified name with a prefix is dropped.
        """
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
        """Add warnings for the client, each text once, up to the most that can be sent."""
        sent = set(self.warnings)
        for text in texts:
            if len(self.warnings) >= MAX_WARNINGS:
                return
            if text not in sent:
                sent.add(text)
                self.warnings.append(text)


def _key_errors(key: str) -> str:
    prefix, slash, _ = key.partition("/")
    if not slash:
        return "a prefix is needed"
    return "; ".join(is_dns1123_subdomain(prefix) or is_qualified_name(key))


def _name_of(obj: Any) -> str:
    """Return the name of an object that the request does not name; a new object may have none yet."""
    metadata = getattr(obj, "metadata", None)
    if metadata is None:
        return "Unknown" if obj is None else "Unknown/errorGettingName"
    return metadata.name or metadata.generate_name or "Unknown"


class Plugin:
    """An admission plugin. A subclass sets the attributes and overrides `admit`, `validate` or both."""

    name: str = ""
    operations: frozenset[Operation] = frozenset()
    resources: frozenset[GroupResource] | None = None
    """Resources that the plugin handles, None for all."""
    subresources: frozenset[str] | None = None
    """Subresources that the plugin handles, None for all; "" is the object itself."""
    mutates: bool = False
    changed_fields: tuple[str, ...] | None = None
    """Attribute paths of all fields that `admit` may change, None for any field.

    Traces compare their values before and after the plugin: a plugin with such fields replaces values, and does not
    change lists and maps in place.
    """
    validates: bool = False
    _subscribers: tuple[Callable[[], None], ...] = ()

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        """Change `attributes.obj` if needed. Raises StatusError to refuse the write.

        Returns what is left to be awaited, None if nothing is.
        """
        return None

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        """Check the write. Raises StatusError to refuse it. Returns what is left to be awaited, None if nothing is."""
        return None

    def has_work(self, writes: WriteKind, *, mutating: bool) -> bool:
        """Return False if the plugin has nothing to do for any such write; their chain then leaves it out.

        It is only called for writes that match the plugin's operations, resources and subresources. A plugin whose
        result may change must notify its subscribers then, and must return True as long as it does not know.
        """
        return True

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Subscribe `changed`, which is called whenever the result of `has_work` may have changed."""
        self._subscribers = (*self._subscribers, changed)

    def notify_work_changed(self) -> None:
        """Notify all subscribers, so that the chains with this plugin are rebuilt."""
        for changed in self._subscribers:
            changed()

    def close(self) -> None:
        """Release the plugin's resources. It is not called any more."""


class WriteKind(NamedTuple):
    """The kind of writes that share one chain of plugins."""

    operation: Operation
    resource: str
    group: str
    subresource: str


_Method = Callable[[Attributes], Awaitable[None] | None]
"""Method `admit` or `validate` of a plugin."""


class _Steps(NamedTuple):
    """Methods of the plugins that handle one kind of write, in order, and their steps in traces."""

    admit: tuple[_Method, ...]
    validate: tuple[_Method, ...]
    admissions: tuple[tuple[StepKind, Compared | None, _Method], ...]
    """The steps, each with the fields that the plugin may change, None if it only looks at the object, and `admit`."""
    validations: tuple[tuple[StepKind, _Method], ...]


def _step_kinds(plugins: Iterable[Plugin], phase: str) -> tuple[StepKind, ...]:
    """Return the steps of plugins; each but the first one ends the step before."""
    return tuple(
        StepKind(f"admission {plugin.name}", attributes={"phase": phase}, follows=number > 0)
        for number, plugin in enumerate(plugins)
    )


_ANY: Final = Compared()


def _compared(plugin: Plugin) -> Compared | None:
    fields = plugin.changed_fields
    return _ANY if fields is None else Compared(fields) if fields else None


async def _admit_in_steps(recorder: Recorder, steps: _Steps, attributes: Attributes) -> None:
    """Call the plugins, each in a step with the paths of the fields that it has changed."""
    marks = recorder.marks
    whole: Any = None  # state of the whole object, None if a plugin may have changed it since
    try:
        for kind, compared, admit in steps.admissions:
            if compared is None:
                marks += (kind, monotonic(), None)
                if (pending := admit(attributes)) is not None:
                    await pending
            elif compared is not _ANY:
                before = compared.values(attributes.obj)
                marks += (kind, monotonic(), None)
                if (pending := admit(attributes)) is not None:
                    await pending
                after = compared.values(attributes.obj)
                if after != before:
                    whole = None
                    recorder.set("changed", Changes(encode(before), encode(after), compared.names))
            else:
                before = document(attributes.obj) if whole is None else whole
                marks += (kind, monotonic(), None)
                if (pending := admit(attributes)) is not None:
                    await pending
                whole = document(attributes.obj)
                if whole != before and before is not None and whole is not None:
                    recorder.set("changed", Changes(before, whole))
        if steps.admissions:
            marks += (END, monotonic(), None)
    except BaseException as error:
        recorder.fail_open(error)
        raise


async def _validate_in_steps(recorder: Recorder, steps: _Steps, attributes: Attributes) -> None:
    """Call the plugins, each in a step."""
    marks = recorder.marks
    try:
        for kind, validate in steps.validations:
            marks += (kind, monotonic(), None)
            if (pending := validate(attributes)) is not None:
                await pending
        if steps.validations:
            marks += (END, monotonic(), None)
    except BaseException as error:
        recorder.fail_open(error)
        raise


class Chain:
    """All enabled admission plugins in order.

    Only plugins with work for a kind of write are called. They are determined at the first such write, and again when a
    plugin reports that its work has changed.
    """

    def __init__(self, plugins: tuple[Plugin, ...]) -> None:
        self.plugins = plugins
        self._handled = frozenset(
            operation for plugin in plugins if plugin.mutates or plugin.validates for operation in plugin.operations
        )
        self._steps: BoundedCache[tuple[str, ...], _Steps] = BoundedCache(_MAX_CHAINS)
        for plugin in plugins:
            plugin.subscribe(self._steps.forget)

    def handles(self, operation: Operation) -> bool:
        """Return True if any plugin handles this operation."""
        return operation in self._handled

    def close(self) -> None:
        """Close all plugins."""
        for plugin in self.plugins:
            plugin.close()

    async def admit(self, attributes: Attributes) -> None:
        """Call every mutating plugin in order, and again if a plugin has requested a reinvocation."""
        action = attributes.action
        writes = (attributes.operation, action.resource, action.group, action.subresource)
        steps = self._steps[writes] or self._build_steps(WriteKind(*writes))
        recorder = current_recorder()
        admitting = None if recorder is None else partial(_admit_in_steps, recorder, steps)
        for admit in steps.admit if admitting is None else (admitting,):
            if (pending := admit(attributes)) is not None:
                await pending
        again = attributes.existing_reinvocation
        if again is not None and again.is_requested and not again.is_second:
            again.is_second = True
            for admit in steps.admit if admitting is None else (admitting,):
                if (pending := admit(attributes)) is not None:
                    await pending

    async def validate(self, attributes: Attributes) -> None:
        """Call every validating plugin in order. The first StatusError ends the validation."""
        action = attributes.action
        writes = (attributes.operation, action.resource, action.group, action.subresource)
        steps = self._steps[writes] or self._build_steps(WriteKind(*writes))
        recorder = current_recorder()
        if recorder is not None:
            await _validate_in_steps(recorder, steps, attributes)
            return
        for validate in steps.validate:
            if (pending := validate(attributes)) is not None:
                await pending

    def _build_steps(self, writes: WriteKind) -> _Steps:
        plugins = [
            plugin
            for plugin in self.plugins
            if writes.operation in plugin.operations
            and (plugin.resources is None or GroupResource(writes.group, writes.resource) in plugin.resources)
            and (plugin.subresources is None or writes.subresource in plugin.subresources)
        ]
        mutating = [each for each in plugins if each.mutates and each.has_work(writes, mutating=True)]
        validating = [each for each in plugins if each.validates and each.has_work(writes, mutating=False)]
        steps = _Steps(
            tuple(each.admit for each in mutating),
            tuple(each.validate for each in validating),
            tuple(
                zip(
                    _step_kinds(mutating, "admit"),
                    map(_compared, mutating),
                    [each.admit for each in mutating],
                    strict=True,
                )
            ),
            tuple(zip(_step_kinds(validating, "validate"), [each.validate for each in validating], strict=True)),
        )
        self._steps.keep(writes, steps)
        return steps
