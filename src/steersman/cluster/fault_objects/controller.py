"""Controller of Faults: makes them happen, and counts the requests that they hit."""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.api.meta.v1 import Condition
from steersman.authentication.user import UserInfo
from steersman.client.errors import ignoring, is_not_found
from steersman.client.informer import new_or_old
from steersman.cluster.fault_objects.definition import FAULTS, FaultObject, FaultStatus
from steersman.cluster.fault_objects.served_resources import messages_about, named_resources, served_names
from steersman.cluster.late_controller import LateController
from steersman.controllers.controller import ControllerDependencies
from steersman.faults.fault import Fault, InvalidFault, TooManyFaults, spec_of
from steersman.faults.fault_set import FaultSet
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.values.conditions import find_condition, with_condition
from steersman.work.offloading import offload_if
from steersman.work.upkeep import upkeep

USER: Final = UserInfo("steersman:faults", groups=("system:masters",))
"""User of the controller."""
ACTIVE: Final = "Active"
_OVER: Final = "Over"
"""Reason of a fault whose time has passed, which does not begin again when the server starts."""
_COUNTED_AFTER: Final = 0.5
"""Seconds in which hits are collected before a status is written."""
_MOST_MESSAGE: Final = 1024
_ALL: Final = ""
"""Key of the check of resources that all faults name."""
_CHECKED_AGAIN: Final = 10.0
"""Seconds between two checks while a fault names a resource that is not served."""


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
        self._named: dict[str, frozenset[str]] = {}
        """Resources that each active fault names."""
        self._warnings: dict[str, str] = {}
        """Messages about faults that name resources that are not served."""
        self._waiting: dict[str, None] = {}
        """Faults for which there are too many others, the one first that has waited longest."""
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
        if key == _ALL:
            await self._check_resources()
            return
        obj = self._objects.get("", key)
        if obj is None or obj.metadata.deletion_timestamp:
            for known in (self._applied, self._named, self._warnings, self._waiting):
                known.pop(key, None)
            self._faults.remove(key)
            self._try_next()
            return
        before = _status_of(obj)
        uid, generation = obj.metadata.uid, obj.metadata.generation
        applied = self._applied.get(key)
        if applied is not None and applied[:2] == (uid, generation):
            fault, error = applied[2], ""
        elif _was_over(before, generation):
            fault, error = None, ""
            self._applied[key] = uid, generation, None
        else:
            fault, error = self._begin(obj, before)
            self._applied[key] = uid, generation, fault
        if fault is None and not error:
            return
        if fault is not None and fault.is_over:
            self._try_next()
        status = _status(before, generation, fault, error or self._warnings.get(key, ""))
        if status != before:
            with ignoring(is_not_found):
                await self.client.update_status(FAULTS, msgspec.structs.replace(obj, status=to_plain(status)))

    def _begin(self, obj: FaultObject, before: FaultStatus) -> tuple[Fault | None, str]:
        """Add the fault of an object. Return it, or why it is invalid. Its counts go on if its spec is the same."""
        name = obj.metadata.name
        for known in (self._named, self._warnings, self._waiting):
            known.pop(name, None)
        try:
            spec = spec_of(obj.spec)
            fault = self._faults.add(name, spec)
        except InvalidFault as error:
            self._faults.remove(name)
            if isinstance(error, TooManyFaults):
                self._waiting[name] = None
            return None, str(error)[:_MOST_MESSAGE]
        if named := named_resources(spec.match.resources):
            self._named[name] = named
            self.queue.add(_ALL)
        if before.observed_generation == obj.metadata.generation:
            fault.matched, fault.injected = before.matched, before.injected
        fault.on_end(lambda: self.queue.add(name))
        return fault, ""

    def _try_next(self) -> None:
        """Try the fault again that has waited longest, as there are fewer others now."""
        waiting = next(iter(self._waiting), None)
        if waiting is not None:
            self._applied.pop(waiting, None)
            self.queue.add(waiting)

    async def _check_resources(self) -> None:
        """Look for faults that name resources that are not served. Raises StatusError, Unreachable."""
        served = await served_names(self.client)
        named = dict(self._named)
        messages = await offload_if(True, messages_about, named, served)
        for name, message in messages.items():
            if message != self._warnings.get(name, "") and self._named.get(name) is named[name]:
                self._warnings[name] = message[:_MOST_MESSAGE]
                self.queue.add(name)
        if any(self._warnings.values()):
            with upkeep():
                self.queue.add_after(_ALL, _CHECKED_AGAIN)


def _status_of(obj: FaultObject) -> FaultStatus:
    """Return the status of an object; an empty one if somebody else has written an invalid one."""
    try:
        return msgspec.convert(obj.status or {}, FaultStatus)
    except msgspec.ValidationError:
        return FaultStatus()


def _was_over(status: FaultStatus, generation: int) -> bool:
    """Return True if the time of the fault had passed before the server started."""
    active = find_condition(status.conditions, ACTIVE)
    return status.observed_generation == generation and active is not None and active.reason == _OVER


def _status(before: FaultStatus, generation: int, fault: Fault | None, error: str) -> FaultStatus:
    if fault is None:
        status, reason = "False", "InvalidSpec"
    elif fault.is_over:
        status, reason = "False", _OVER
    elif fault.is_exhausted:
        status, reason = "False", "Exhausted"
    else:
        status, reason = "True", "Injecting"
    condition = Condition(type=ACTIVE, status=status, observed_generation=generation, reason=reason, message=error)
    conditions = with_condition(before.conditions, condition)
    if fault is None:
        return FaultStatus(generation, conditions=conditions)
    return FaultStatus(generation, fault.matched, fault.injected, list(fault.last) or before.last, conditions)
