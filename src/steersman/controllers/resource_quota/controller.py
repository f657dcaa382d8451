"""Controller of quotas: it keeps limits and usage in their status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from steersman.api.core.v1 import ResourceQuota, ResourceQuotaStatus
from steersman.api.meta.v1 import ObjectMeta, PartialObjectMetadata
from steersman.client.api_resource import APIResource
from steersman.client.informer import Informer, Key, key_of
from steersman.client.resources import RESOURCE_QUOTAS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.controllers.resource_quota.measured_resources import MeasuredResource, measured_resources
from steersman.controllers.resource_quota.sums import ZERO
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.built_in.quota.measure import IGNORED, Measure, counting, scopes_of
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values.quantity import Quantity, parse
from steersman.work import simulated_time
from steersman.work.periodic import Periodic
from steersman.work.work_queue import TryLater

RESYNC: Final = 300.0
"""Seconds between two reconciliations of all quotas (`--resource-quota-sync-period`)."""
_SYNC_TIMEOUT: Final = 10.0
"""Seconds after which quotas are reconciled even if some informers have not synced."""
QUIET: Final = 2.0
"""Seconds without new objects in a namespace before its quotas are reconciled again."""
_PAUSE_FACTOR: Final = 4
"""Factor of the pause between two reconciliations of a quota for released usage, relative to their duration."""


class ResourceQuotaController(Controller[Key]):
    """Computes the usage of quotas. A key is the namespace and name of a quota.

    Admission charges new objects. This controller computes the usage of a quota when the quota is created or its limits
    change, and when usage is released: an object was deleted, a pod has ended, a service has another type.
    """

    name = "resourcequota-controller"
    account = "resourcequota-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._quotas = self.informers.for_resource(RESOURCE_QUOTAS)
        self._quotas.on_change(self._quota_changed)
        self._pauses: dict[Key, float] = {}
        self._quiet_timers: dict[Key, simulated_time.Timer] = {}
        """Timers of quotas in whose namespaces objects were created recently."""
        self._measured: dict[GroupResource, MeasuredResource[Any]] = {}
        for each in measured_resources(self.informers):
            self._measured[each.measure.resource] = each
            self._subscribe(each)
        self._monitors = dependencies.monitors
        self._monitors.on_change(self._object_changed)
        self._monitors.on_resource(self._resource_added)

    async def run(self) -> None:
        self._monitors.start()
        with suppress(TimeoutError):  # an aggregated server may be silent: the usage of its resources stays unknown
            async with asyncio.timeout(_SYNC_TIMEOUT):
                await self._monitors.wait_until_synced()
        async with asyncio.TaskGroup() as group:
            resync = Periodic("resync of quotas", self._resync, RESYNC, is_simulated=True)
            group.create_task(resync.run(), name="resync of quotas")
            group.create_task(super().run(), name=self.name)

    async def _resync(self) -> None:
        for each in self._measured.values():
            each.forget()
        for quota in self._quotas:
            self.queue.add(key_of(quota))

    # Changes that queue quotas

    def _quota_changed(self, old: ResourceQuota | None, new: ResourceQuota | None) -> None:
        if new is None:
            if old is not None:
                self._pauses.pop(key_of(old), None)
                if (timer := self._quiet_timers.pop(key_of(old), None)) is not None:
                    timer.cancel()
                if not self._quotas.count(old.metadata.namespace):
                    for each in self._measured.values():
                        each.forget(old.metadata.namespace)
        elif old is None or not _equal(old.spec.hard, new.spec.hard):
            self.queue.add(key_of(new))

    def _subscribe(self, each: MeasuredResource[Any]) -> None:
        def changed(old: Any, new: Any) -> None:
            if old is not None and (new is None or each.may_release(old, new)):
                self._replenish(each.measure, old.metadata.namespace)
            elif old is None:
                self._recheck_when_quiet(each.measure, new.metadata.namespace)

        each.objects.on_change(changed)

    def _object_changed(
        self, resource: APIResource[PartialObjectMetadata], old: ObjectMeta | None, new: ObjectMeta | None
    ) -> None:
        if resource.group_resource in self._measured:
            return
        if old is not None and new is None:
            self._replenish(counting(resource.group_resource), old.namespace)
        elif old is None and new is not None:
            self._recheck_when_quiet(counting(resource.group_resource), new.namespace)

    def _replenish(self, measure: Measure[Any], namespace: str) -> None:
        for quota in self._quotas.list(namespace) if namespace else ():
            if measure.matching(quota.status.hard):
                key = key_of(quota)
                self.queue.add_after(key, self._pauses.get(key, 0.0))

    def _recheck_when_quiet(self, measure: Measure[Any], namespace: str) -> None:
        """Queue quotas for the time when no more objects are being created.

        Admission charges an object before it is stored. A sum that is computed in between does not include the object,
        and would otherwise stay wrong until the next resync, as it does upstream.
        """
        for quota in self._quotas.list(namespace) if namespace and self._quotas.count(namespace) else ():
            if measure.matching(quota.status.hard):
                key = key_of(quota)
                if (timer := self._quiet_timers.pop(key, None)) is not None:
                    timer.cancel()
                self._quiet_timers[key] = simulated_time.call_later(QUIET, self._became_quiet, key)

    def _became_quiet(self, key: Key) -> None:
        del self._quiet_timers[key]
        self.queue.add(key)

    def _resource_added(self, resource: APIResource[PartialObjectMetadata]) -> None:
        name = counting(resource.group_resource).count
        for quota in self._quotas:
            if name in quota.spec.hard and name not in quota.status.used:
                self.queue.add(key_of(quota))

    # Usage

    async def sync(self, key: Key) -> None:
        quota = self._quotas.get(*key)
        if quota is None:
            return
        started = time.perf_counter()
        usage, unknown = await self._measure_usage(quota)
        hard = quota.spec.hard
        used = {name: text for name, text in quota.status.used.items() if name in hard}
        used |= {name: str(amount) for name, amount in usage.items()}
        if not (_equal(hard, quota.status.hard) and _equal(used, quota.status.used)):
            changed = deep_copy(quota)
            changed.status = ResourceQuotaStatus(hard=dict(hard), used=used)
            await self.client.update_status(RESOURCE_QUOTAS, changed)
        took = time.perf_counter() - started
        self._pauses[key] = _PAUSE_FACTOR * took if took > 0.01 else 0.0
        if unknown:
            raise TryLater(f"{unknown} is not measured yet")

    async def _measure_usage(self, quota: ResourceQuota) -> tuple[Amounts, str]:
        """Return the usage of the limited resources, and a resource whose usage is unknown yet, "" if there is none."""
        names, namespace, scopes = quota.spec.hard, quota.metadata.namespace, scopes_of(quota)
        total: Amounts = {}
        for each in self._measured.values():
            if matching := each.measure.matching(names):
                used = await each.used(matching, namespace, scopes)
                for name, amount in used.items():
                    total[name] = total.get(name, ZERO) + amount
        unknown = ""
        for measure, objects in self._counted_resources():
            if matching := measure.matching(names):
                if not objects.has_synced:
                    unknown = str(measure.resource)
                    continue
                number = Quantity(0 if scopes else objects.count(namespace))
                total |= dict.fromkeys(matching, number)
        return total, unknown

    def _counted_resources(self) -> Iterator[tuple[Measure[Any], Informer[Any]]]:
        """Yield the measures and informers of resources for which only the number of objects counts."""
        for resource, objects in self._monitors.followed():
            name = resource.group_resource
            if resource.namespaced and name not in self._measured and name not in IGNORED:
                yield counting(name), objects


def _equal(some: dict[str, str], others: dict[str, str]) -> bool:
    """Return True if the amounts are equal by value."""
    return some == others or (
        some.keys() == others.keys() and all(parse(each) == parse(others[name]) for name, each in some.items())
    )
