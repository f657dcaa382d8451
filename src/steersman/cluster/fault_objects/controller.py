"""Controller of Faults: makes them happen, and counts the requests that they hit."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.meta.v1 import Condition
from steersman.authentication.user import UserInfo
from steersman.client.errors import ignoring, is_not_found
from steersman.client.informer import new_or_old
from steersman.cluster.fault_objects.definition import FAULTS, FaultObject, FaultStatus
from steersman.cluster.late_controller import LateController
from steersman.controllers.controller import ControllerDependencies
from steersman.faults.fault import Fault, InvalidFault, spec_of
from steersman.faults.fault_set import FaultSet
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.values.conditions import with_condition

USER: Final = UserInfo("steersman:faults", groups=("system:masters",))
"""User of the controller."""
ACTIVE: Final = "Active"
_COUNTED_AFTER: Final = 0.5
"""Seconds in which hits are collected before a status is written."""
_MOST_MESSAGE: Final = 1024


class FaultController(LateController[str]):
    """Keeps the faults of a server as Fault objects say."""

    name = "fault-controller"
    component = "fault-controller"
    retry_delay = 0.05
    longest_retry_delay = 60.0

    def __init__(self, dependencies: ControllerDependencies, faults: FaultSet) -> None:
        super().__init__(dependencies)
        self._faults = faults
        self._applied: dict[str, tuple[str, int, Fault | None]] = {}
        """Uid and generation of each object, and its fault unless it is invalid."""
        self._objects = self.follow(FAULTS)
        self._objects.on_change(self._changed)
        faults.on_injection = self._hit

    async def stop(self) -> None:
        """Stop, and end the faults."""
        await super().stop()
        self._faults.on_injection = None
        self._faults.clear()

    def _changed(self, old: FaultObject | None, new: FaultObject | None) -> None:
        self.queue.add(new_or_old(old, new).metadata.name)

    def _hit(self, fault: Fault) -> None:
        self.queue.add_after(fault.name, _COUNTED_AFTER)

    async def sync(self, key: str) -> None:
        obj = self._objects.get("", key)
        if obj is None or obj.metadata.deletion_timestamp:
            self._applied.pop(key, None)
            self._faults.remove(key)
            return
        before = _status_of(obj)
        uid, generation = obj.metadata.uid, obj.metadata.generation
        known = self._applied.get(key)
        if known is not None and known[:2] == (uid, generation):
            fault, error = known[2], ""
        else:
            fault, error = self._begin(obj, before)
            self._applied[key] = uid, generation, fault
        if fault is None and not error:
            return
        status = _status(before, generation, fault, error)
        if status != before:
            with ignoring(is_not_found):
                await self.client.update_status(FAULTS, msgspec.structs.replace(obj, status=to_plain(status)))

    def _begin(self, obj: FaultObject, before: FaultStatus) -> tuple[Fault | None, str]:
        """Add the fault of an object. Return it, or why it is invalid. Its counts go on if its spec is the same."""
        name = obj.metadata.name
        try:
            fault = self._faults.add(name, spec_of(obj.spec))
        except InvalidFault as error:
            self._faults.remove(name)
            return None, str(error)[:_MOST_MESSAGE]
        if before.observed_generation == obj.metadata.generation:
            fault.matched, fault.injected = before.matched, before.injected
        fault.on_end(lambda: self.queue.add(name))
        return fault, ""


def _status_of(obj: FaultObject) -> FaultStatus:
    """Return the status of an object; an empty one if somebody else has written an invalid one."""
    try:
        return msgspec.convert(obj.status or {}, FaultStatus)
    except msgspec.ValidationError:
        return FaultStatus()


def _status(before: FaultStatus, generation: int, fault: Fault | None, error: str) -> FaultStatus:
    if fault is None:
        status, reason = "False", "InvalidSpec"
    elif fault.is_over:
        status, reason = "False", "Over"
    elif fault.is_exhausted:
        status, reason = "False", "Exhausted"
    else:
        status, reason = "True", "Injecting"
    condition = Condition(type=ACTIVE, status=status, observed_generation=generation, reason=reason, message=error)
    conditions = with_condition(before.conditions, condition)
    if fault is None:
        return FaultStatus(generation, conditions=conditions)
    return FaultStatus(generation, fault.matched, fault.injected, list(fault.last) or before.last, conditions)
