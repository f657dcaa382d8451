"""Sums of the usage of a namespace's objects, updated incrementally: a query costs only the changes since the last one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, Generic, TypeVar

from steersman.api.core.v1 import ScopedResourceSelectorRequirement
from steersman.client.api_resource import Object
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.built_in.quota.measure import Measure
from steersman.machinery.selectors.labels import SelectorError
from steersman.machinery.values.quantity import Quantity
from steersman.work.yielding import TimeSlice

O = TypeVar("O", bound=Object)  # noqa: E741

Scopes = Sequence[ScopedResourceSelectorRequirement]

ZERO: Final = Quantity(0)
_MAX_SHARED: Final = 1000
"""Most distinct amounts that are shared between objects with equal usage."""
_MAX_SUMS: Final = 16
"""Most sums of a namespace, each for other scopes; the oldest is evicted."""
_NONE: Final[Amounts] = {}


class Sum(Generic[O]):
    """Usage of the objects that are in all of some scopes. An object for which a scope cannot be evaluated is in none."""

    def __init__(self, measure: Measure[O], scopes: Scopes, objects: Sequence[O]) -> None:
        self._measure = measure
        self._scopes = scopes
        self._total: Amounts = {}
        self._counted: dict[str, Amounts] = {}
        self._shared: dict[tuple[object, ...], Amounts] = {}
        self._terminating: dict[str, O] = {}
        self._changed: dict[str, O | None] = {each.metadata.name: each for each in objects}

    def change(self, name: str, obj: O | None) -> None:
        """Note that an object was added or changed, or deleted (None)."""
        self._changed[name] = obj

    async def used(self, names: Collection[str]) -> Amounts:
        """Return the usage of `names`, 0 for unused names. It may include changes made during the call."""
        time_slice = TimeSlice()
        while self._changed:
            self._count(*self._changed.popitem())
            await time_slice.pause_if_over()
        total = {name: self._total.get(name, ZERO) for name in names}
        for obj in self._terminating.values():
            for name, amount in self._usage(obj).items():
                if name in total:
                    total[name] += amount
        return total

    def _count(self, name: str, obj: O | None) -> None:
        for each, amount in self._counted.pop(name, _NONE).items():
            self._total[each] -= amount
        self._terminating.pop(name, None)
        if obj is None:
            return
        if obj.metadata.deletion_timestamp is not None:
            self._terminating[name] = obj  # the usage of a terminating object depends on the time
            return
        usage = self._usage(obj)
        if usage:
            self._counted[name] = self._share(usage)
        for each, amount in usage.items():
            self._total[each] = self._total.get(each, ZERO) + amount

    def _usage(self, obj: O) -> Amounts:
        try:
            inside = all(self._measure.in_scope(scope, obj) for scope in self._scopes)
        except SelectorError:
            return _NONE
        return self._measure.usage(obj) if inside else _NONE

    def _share(self, usage: Amounts) -> Amounts:
        """Return the shared copy of equal amounts, to save memory."""
        key = tuple((name, each.mantissa, each.exponent, each.format) for name, each in usage.items())
        shared = self._shared.get(key)
        if shared is None:
            shared = usage
            if len(self._shared) < _MAX_SHARED:
                self._shared[key] = usage
        return shared


class Sums(Generic[O]):
    """Sums of one measure for all namespaces that were queried."""

    def __init__(self, measure: Measure[O]) -> None:
        self._measure = measure
        self._sums: dict[str, dict[tuple[object, ...], Sum[O]]] = {}

    def change(self, old: O | None, new: O | None) -> None:
        """Note a change of an object, as a handler of an informer."""
        present = new if new is not None else old
        assert present is not None
        for each in self._sums.get(present.metadata.namespace, {}).values():
            each.change(present.metadata.name, new)

    def get(self, namespace: str, scopes: Scopes, objects: Callable[[str], Sequence[O]]) -> Sum[O]:
        """Return the sum of a namespace and scopes; `objects` returns the current objects of a namespace for a new sum."""
        key = tuple((each.scope_name, each.operator, *each.values) for each in scopes)
        sums = self._sums.setdefault(namespace, {})
        cached = sums.get(key)
        if cached is None:
            if len(sums) >= _MAX_SUMS:
                del sums[next(iter(sums))]
            cached = sums[key] = Sum(self._measure, scopes, objects(namespace))
        return cached

    def forget(self, namespace: str = "") -> None:
        """Drop the sums of a namespace, or of all, so that they are measured again."""
        if namespace:
            self._sums.pop(namespace, None)
        else:
            self._sums.clear()
