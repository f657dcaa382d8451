"""Check of the devices in the configuration file of a cluster.

Slow to import, as validation of ResourceSlices is.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from steersman.api.core.v1 import Node
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.resource.v1 import ResourceSlice
from steersman.machinery.codec.serializer import decode_json, encode
from steersman.nodes.devices.slices import DeviceSet, DeviceSets
from steersman.registry.resource.resourceslices import set_defaults
from steersman.registry.resource.slice_validation import validate_slice

_NODE = Node(metadata=ObjectMeta(name="node"))


def fault_of(devices: DeviceSet) -> str:
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
