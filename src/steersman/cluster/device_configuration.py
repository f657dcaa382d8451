"""Check of the devices in the configuration file of a cluster.

Slow to import, as validation of ResourceSlices is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from steersman.api.core.v1 import Node
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.resource.v1 import ResourceSlice
from steersman.machinery.codec.serializer import decode_json, encode
from steersman.nodes.devices.slices import MOST_DEVICES, DeviceSet, DeviceSets, devices_of
from steersman.registry.resource.resourceslices import set_defaults
from steersman.registry.resource.slice_validation import validate_slice

_NODE = Node(metadata=ObjectMeta(name="node"))
_MOST_TEXT: Final = 500
"""Characters of a fault, which may have a value of the file."""


def fault_in(sets: Sequence[DeviceSet]) -> str:
    """Return the first fault of the devices in a file, "" if there is none."""
    if (count := sum(max(each.size, 1) for each in sets)) > MOST_DEVICES:
        return f"devices: {count} on a node: at most {MOST_DEVICES} may be configured"
    devices, counters = _Names(), _Names()
    for at, each in enumerate(sets):
        fault = (
            _fault_of(each)
            or devices.add(each, [one.name for one in devices_of(each)])
            or counters.add(each, [one.name for one in each.shared_counters])
        )
        if fault:
            return f"devices[{at}]: {fault[:_MOST_TEXT]}"
    return ""


class _Names:
    """Names of devices, or of sets of counters, which must be unique in the pool of a driver on a node.

    Nodes are surely the same if the selectors are equal or one of them is empty.
    """

    def __init__(self) -> None:
        self._by_selector: dict[tuple[str, str], set[str]] = {}
        self._by_driver: dict[str, set[str]] = {}

    def add(self, of: DeviceSet, names: Sequence[str]) -> str:
        """Add the names of a set. Return a fault if one is there already, otherwise ""."""
        here, everywhere = (self._by_selector.setdefault((of.driver, each), set()) for each in (of.nodes, ""))
        of_driver = self._by_driver.setdefault(of.driver, set())
        for name in names:
            if name in (here if of.nodes else of_driver) or name in everywhere:
                return f"{name} is there twice on a node, of the same driver"
            here.add(name)
            of_driver.add(name)
        return ""


def _fault_of(devices: DeviceSet) -> str:
    """Return why the server would refuse a slice with devices, "" if it would not."""
    for each in DeviceSets([replace(devices, nodes="")]).slices_of(_NODE):
        try:
            piece = decode_json(ResourceSlice, encode(each))
        except msgspec.ValidationError as error:
            return str(error)
        set_defaults(piece)
        for fault in validate_slice(piece.spec, None):
            return str(fault)
    return ""
