"""Priority: a pod gets the priority and preemption policy of its PriorityClass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from steersman.admission.interface import CREATE, OBJECT_ALONE, UPDATE, Attributes, Plugin, WriteKind
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.objects import Reading

_PODS: Final = GroupResource("", "pods")
_CLASSES: Final = GroupResource("scheduling.k8s.io", "priorityclasses")
_DEFAULT_POLICY: Final = "PreemptLowerPriority"
_NOT_DEFAULT: Final = "PreemptLowerPriority"
_UNKNOWN: Final = object()
"""Marker for a default class that has not been determined yet."""


class Priority(Plugin):
    """Sets priorities of pods, and allows only one default class.

    `find` returns a PriorityClass by name, None if it does not exist. `every` returns all classes. `subscribe` subscribes
    a function to changes of the classes.
    """

    name = "Priority"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_PODS, _CLASSES})
    subresources = OBJECT_ALONE
    mutates = True
    changed_fields = ("spec.priority_class_name", "spec.priority", "spec.preemption_policy")
    validates = True

    def __init__(
        self,
        find: Callable[[str], Any | None],
        every: Callable[[], Iterable[Any]],
        subscribe: Callable[[Callable[[], None]], None],
    ) -> None:
        self._find = find
        self._every = every
        self._default: Any = _UNKNOWN
        subscribe(self._forget_default)

    def has_work(self, writes: WriteKind, *, mutating: bool) -> bool:
        return writes.resource == (_PODS if mutating else _CLASSES).resource

    async def admit(self, attributes: Attributes) -> None:
        """Set the pod's priority. Raises StatusError 403 for a missing class, and for a priority that contradicts the
        class.
        """
        pod = attributes.obj
        if attributes.operation == UPDATE:
            old = attributes.old
            if pod.spec.priority is None and old.spec.priority is not None:
                pod.spec.priority = old.spec.priority
            if pod.spec.preemption_policy is None and old.spec.preemption_policy is not None:
                pod.spec.preemption_policy = old.spec.preemption_policy
            return
        value, policy = self._priority_of(attributes, pod)
        if pod.spec.priority is not None and pod.spec.priority != value:
            raise attributes.forbid(
                f"the integer value of priority ({pod.spec.priority}) must not be provided in pod spec; priority "
                f"admission controller computed {value} from the given PriorityClass name"
            )
        pod.spec.priority = value
        if pod.spec.preemption_policy is not None and pod.spec.preemption_policy != policy:
            raise attributes.forbid(
                f"the string value of PreemptionPolicy ({pod.spec.preemption_policy}) must not be provided in pod "
                f"spec; priority admission controller computed {policy} from the given PriorityClass name"
            )
        pod.spec.preemption_policy = policy

    def _priority_of(self, attributes: Attributes, pod: Any) -> tuple[int, str]:
        name = pod.spec.priority_class_name
        if name:
            found = self._find(name)
            if found is None:
                raise attributes.forbid(f"no PriorityClass with name {name} was found")
            return found.value, found.preemption_policy or _DEFAULT_POLICY
        chosen = self._default if self._default is not _UNKNOWN else self._default_class()
        if chosen is None:
            return 0, _NOT_DEFAULT
        pod.spec.priority_class_name = chosen.metadata.name
        return chosen.value, chosen.preemption_policy or _DEFAULT_POLICY

    def _default_class(self) -> Any | None:
        """Return the class of pods that name none: of several global defaults the one with the lowest value."""
        defaults = [each for each in self._every() if each.global_default]
        self._default = min(defaults, key=lambda each: each.value, default=None)
        return self._default

    def _forget_default(self) -> None:
        self._default = _UNKNOWN

    async def validate(self, attributes: Attributes) -> None:
        """Raise StatusError 403 for a second global default class."""
        obj = attributes.obj
        if not obj.global_default:
            return
        for each in self._every():
            if each.global_default and each.metadata.name != attributes.obj.metadata.name:
                raise attributes.forbid(
                    f"PriorityClass {each.metadata.name} is already marked as default. Only one default can exist"
                )


_CLASS: Final = Reading(lambda obj: obj, "metadata.name", "value", "globalDefault", "preemptionPolicy")


def _make(dependencies: PluginDependencies) -> Priority:
    classes = dependencies.objects("scheduling.k8s.io", "priorityclasses")
    return Priority(
        lambda name: classes.read_cached("", name, _CLASS),
        lambda: classes.read_all_cached("", _CLASS),
        classes.subscribe,
    )


PRIORITY: Final = Declaration(Priority, on_by_default=True, make=_make)
