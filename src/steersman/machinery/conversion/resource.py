"""Conversion of resource.k8s.io kinds between v1, where most are stored, and older versions.

v1beta2 has the types of v1. In v1beta1 a request has the members of `exactly` itself, a device has its own members in
`basic`, and a slice cannot tell an empty node name, or a false `allNodes`, from an unset one.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from steersman.api.resource import v1, v1alpha3, v1beta1, v1beta2
from steersman.machinery.conversion.conversion import Conversion
from steersman.machinery.conversion.derived import Convert, derive_both_ways, derive_conversion

_EXACTLY: Final = v1.ExactDeviceRequest.__struct_fields__
_BASIC: Final = v1beta1.BasicDevice.__struct_fields__
_SLICE_SPEC: Final = v1.ResourceSliceSpec.__struct_fields__


@cache
def _between(source: type[msgspec.Struct], target: type[msgspec.Struct]) -> Convert:
    return derive_conversion(source, target)


def _each(values: Any, source: type[msgspec.Struct], target: type[msgspec.Struct]) -> Any:
    """Convert a list or dict of structs, a single struct, or None."""
    convert = _between(source, target)
    if isinstance(values, list):
        return [convert(each) for each in values]
    if isinstance(values, dict):
        return {name: convert(each) for name, each in values.items()}
    return None if values is None else convert(values)


_REQUEST_PARTS: Final = {
    "selectors": "DeviceSelector",
    "tolerations": "DeviceToleration",
    "capacity": "CapacityRequirements",
}
_DEVICE_PARTS: Final = {
    "attributes": "DeviceAttribute",
    "capacity": "DeviceCapacity",
    "consumes_counters": "DeviceCounterConsumption",
    "taints": "DeviceTaint",
    "node_allocatable_resource_mappings": "NodeAllocatableResourceMapping",
}


def _part(name: str, value: Any, parts: dict[str, str], source: Any, target: Any) -> Any:
    """Convert the value of a member from version `source` to version `target`."""
    type_name = parts.get(name)
    if type_name is None:
        return value
    return _each(value, getattr(source, type_name), getattr(target, type_name))


def to_v1_request(request: v1beta1.DeviceRequest) -> v1.DeviceRequest:
    """Convert a request to v1; `exactly` is set if any of its members is."""
    members = {name: getattr(request, name) for name in _EXACTLY}
    exactly = None
    if any(members.values()) or request.admin_access is not None or request.capacity is not None:
        exactly = v1.ExactDeviceRequest(
            **{name: _part(name, value, _REQUEST_PARTS, v1beta1, v1) for name, value in members.items()}
        )
    first_available = _each(request.first_available, v1beta1.DeviceSubRequest, v1.DeviceSubRequest)
    return v1.DeviceRequest(name=request.name, exactly=exactly, first_available=first_available)


def from_v1_request(request: v1.DeviceRequest) -> v1beta1.DeviceRequest:
    """Convert a request from v1; the members of `exactly` move into the request."""
    first_available = _each(request.first_available, v1.DeviceSubRequest, v1beta1.DeviceSubRequest)
    made = v1beta1.DeviceRequest(name=request.name, first_available=first_available)
    if request.exactly is not None:
        for name in _EXACTLY:
            setattr(made, name, _part(name, getattr(request.exactly, name), _REQUEST_PARTS, v1, v1beta1))
    return made


def to_v1_device(device: v1beta1.Device) -> v1.Device:
    """Convert a device to v1; the members of `basic` move into the device."""
    made = v1.Device(name=device.name)
    if device.basic is not None:
        for name in _BASIC:
            setattr(made, name, _part(name, getattr(device.basic, name), _DEVICE_PARTS, v1beta1, v1))
    return made


def from_v1_device(device: v1.Device) -> v1beta1.Device:
    """Convert a device from v1; `basic` is always set."""
    basic = v1beta1.BasicDevice(
        **{name: _part(name, getattr(device, name), _DEVICE_PARTS, v1, v1beta1) for name in _BASIC}
    )
    return v1beta1.Device(name=device.name, basic=basic)


_SLICE_PARTS: Final = {"pool": "ResourcePool", "shared_counters": "CounterSet"}


def to_v1_slice_spec(spec: v1beta1.ResourceSliceSpec) -> v1.ResourceSliceSpec:
    """Convert a slice's spec to v1; an empty node name and a false `allNodes` become unset."""
    made = v1.ResourceSliceSpec()
    for name in _SLICE_SPEC:
        setattr(made, name, _part(name, getattr(spec, name), _SLICE_PARTS, v1beta1, v1))
    made.node_name = spec.node_name or None
    made.all_nodes = spec.all_nodes or None
    made.devices = None if spec.devices is None else [to_v1_device(each) for each in spec.devices]
    return made


def from_v1_slice_spec(spec: v1.ResourceSliceSpec) -> v1beta1.ResourceSliceSpec:
    """Convert a slice's spec from v1; an unset node name becomes empty."""
    made = v1beta1.ResourceSliceSpec()
    for name in _SLICE_SPEC:
        setattr(made, name, _part(name, getattr(spec, name), _SLICE_PARTS, v1, v1beta1))
    made.node_name = spec.node_name or ""
    made.all_nodes = bool(spec.all_nodes)
    made.devices = None if spec.devices is None else [from_v1_device(each) for each in spec.devices]
    return made


SPECIAL: Final = (
    Conversion(v1beta1.DeviceRequest, v1.DeviceRequest, to_v1_request),
    Conversion(v1.DeviceRequest, v1beta1.DeviceRequest, from_v1_request),
    Conversion(v1beta1.ResourceSliceSpec, v1.ResourceSliceSpec, to_v1_slice_spec),
    Conversion(v1.ResourceSliceSpec, v1beta1.ResourceSliceSpec, from_v1_slice_spec),
)
"""Conversions of types whose members differ."""

CONVERSIONS: Final = (
    *derive_both_ways(v1beta1.DeviceClass, v1.DeviceClass),
    *derive_both_ways(v1beta1.ResourceClaim, v1.ResourceClaim, SPECIAL),
    *derive_both_ways(v1beta1.ResourceClaimTemplate, v1.ResourceClaimTemplate, SPECIAL),
    *derive_both_ways(v1beta1.ResourceSlice, v1.ResourceSlice, SPECIAL),
    *derive_both_ways(v1beta2.DeviceClass, v1.DeviceClass),
    *derive_both_ways(v1beta2.ResourceClaim, v1.ResourceClaim),
    *derive_both_ways(v1beta2.ResourceClaimTemplate, v1.ResourceClaimTemplate),
    *derive_both_ways(v1beta2.ResourceSlice, v1.ResourceSlice),
    *derive_both_ways(v1beta2.DeviceTaintRule, v1alpha3.DeviceTaintRule),
)
