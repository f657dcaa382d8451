"""Selection of devices by CEL expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from steersman.api.resource.v1 import Device, DeviceSelector
from steersman.work.offloading import offload_if

if TYPE_CHECKING:  # most clusters have no devices
    from steersman.scheduler.devices.expressions import Outcomes

MOST_COST: Final = 10_000_000
"""Cost of all selectors of one pod on all devices: about ten seconds, the timeout of upstream's filter."""


class SelectionFailed(Exception):
    """An expression cannot be evaluated for a device. The text names the expression and the reason."""


class Selections:
    """Results of device selectors for one pod.

    `evaluate` evaluates them in a worker thread; the event loop only reads results.
    """

    def __init__(self) -> None:
        self._outcomes: dict[tuple[int, str], bool | str] = {}
        self._is_complete = True
        self._devices: list[Device] = []
        """Devices of the evaluation; holding them keeps their identities valid."""

    async def evaluate(self, devices: Sequence[tuple[Device, str]], chains: Iterable[Sequence[DeviceSelector]]) -> None:
        """Evaluate chains of selectors for devices with their drivers; each chain up to the first that does
        not select.
        """
        expressions = {tuple(each.cel.expression for each in chain if each.cel is not None) for chain in chains}
        wanted = sorted(each for each in expressions if each)
        if wanted:
            self._outcomes, self._is_complete = await offload_if(True, _outcomes, devices, wanted)
            self._devices = [device for device, _ in devices]

    def is_selected(self, device: Device, driver: str, selectors: Sequence[DeviceSelector], whose: str) -> bool:
        """Return True if all selectors select a device. `whose` names their owner in errors. Raises SelectionFailed."""
        for number, selector in enumerate(selectors):
            if selector.cel is None:
                raise SelectionFailed(f"{whose}: selector #{number}: CEL expression empty (unsupported selector type?)")
            expression = selector.cel.expression
            outcome = self._outcomes.get((id(device), expression))
            if outcome is None and not self._is_complete:
                count = len(self._devices)
                raise SelectionFailed(f"the pod's selectors cost more than {MOST_COST} CEL units on {count} devices")
            if outcome is None:  # the device was added after the evaluation; the pod will be tried again
                outcome = "CEL runtime error: the device has changed meanwhile"
            if isinstance(outcome, str):
                raise SelectionFailed(f"{whose}: selector #{number}: {outcome}")
            if not outcome:
                return False
        return True


def _outcomes(devices: Sequence[tuple[Device, str]], chains: Sequence[tuple[str, ...]]) -> Outcomes:
    """Return the outcomes of expressions. Imports CEL in a worker thread, as most clusters never need it."""
    from steersman.scheduler.devices.expressions import outcomes

    return outcomes(devices, chains, MOST_COST)
