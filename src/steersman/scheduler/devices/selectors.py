"""Devices that CEL expressions select."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steersman.api.resource.v1 import Device, DeviceSelector
from steersman.work.offloading import offload_if


class SelectionFailed(Exception):
    """An expression cannot be evaluated for a device; the text says which and why."""


class Selections:
    """Devices that selectors select for one pod: evaluated in a thread by `look`, so that the loop only reads it."""

    def __init__(self) -> None:
        self._outcomes: dict[tuple[int, str], bool | str] = {}
        self._devices: dict[int, Device] = {}
        """Devices that were looked at, by identity, which stays theirs as long as they are kept."""

    async def look(self, devices: Sequence[tuple[Device, str]], chains: Iterable[Sequence[DeviceSelector]]) -> None:
        """Evaluates `chains` of selectors for devices with their drivers, each chain up to what does not select."""
        expressions = {tuple(each.cel.expression for each in chain if each.cel is not None) for chain in chains}
        wanted = sorted(each for each in expressions if each)
        if wanted:
            self._outcomes |= await offload_if(True, _outcomes, devices, wanted)
            self._devices |= {id(device): device for device, _ in devices}

    def is_selected(self, device: Device, driver: str, selectors: Sequence[DeviceSelector], whose: str) -> bool:
        """Whether all selectors select a device; `whose` says whose they are. Raises SelectionFailed."""
        for number, selector in enumerate(selectors):
            if selector.cel is None:
                raise SelectionFailed(f"{whose}: selector #{number}: CEL expression empty (unsupported selector type?)")
            expression = selector.cel.expression
            outcome = self._outcomes.get((id(device), expression))
            if outcome is None:  # the device has come since: another look follows
                outcome = "CEL runtime error: the device has changed meanwhile"
            if isinstance(outcome, str):
                raise SelectionFailed(f"{whose}: selector #{number}: {outcome}")
            if not outcome:
                return False
        return True


def _outcomes(
    devices: Sequence[tuple[Device, str]], chains: Sequence[tuple[str, ...]]
) -> dict[tuple[int, str], bool | str]:
    """Outcomes by identity of the device and expression. CEL is imported here, in a thread: most clusters need none."""
    from steersman.scheduler.devices.expressions import outcomes

    return outcomes(devices, chains)
