"""Validation of ResourceSlices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Protocol

from steersman.api.resource.v1 import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    ResourceSliceSpec,
)
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    Verbatim,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
)
from steersman.machinery.validation.formats import byte_length, is_dns1123_label, is_valid_label_value
from steersman.machinery.validation.leaves import (
    validate_choice,
    validate_dns1123_label,
    validate_dns1123_subdomain,
    validate_immutable,
    validate_required,
    validate_with,
)
from steersman.machinery.validation.selectors import validate_label_name
from steersman.registry.pod_template.validation.scheduling import validate_node_selector
from steersman.registry.printing.internal_form import internal_text
from steersman.registry.resource.claim_status_validation import validate_binding_conditions
from steersman.registry.resource.claim_validation import EFFECTS
from steersman.registry.resource.names import validate_items, validate_pool_name, validate_qualified_name, validate_set
from steersman.registry.resource.request_policy_validation import validate_request_policy
from steersman.registry.validation.drivers import validate_driver_name
from steersman.work.patterns import late_pattern

MAX_DEVICES: Final = 128
MAX_DEVICES_ADVANCED: Final = 64
"""The limit of devices if any has taints or consumes counters."""
MAX_ATTRIBUTES: Final = 32
MAX_TAINTS: Final = 16
MAX_VALUE: Final = 64
MAX_COUNTER_SETS: Final = 8
MAX_CONSUMED_SETS: Final = 2
"""The most counter sets that one device consumes from."""
MAX_COUNTERS: Final = 32

_SEMVER: Final = late_pattern(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?",
    re.ASCII,
)
_ONE_NODE_SELECTION: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_ONE_DEVICE_NODE_SELECTION: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` "
    "is set to true in the ResourceSlice spec"
)


def validate_slice(spec: ResourceSliceSpec, old: ResourceSliceSpec | None) -> Iterator[FieldError]:
    """Validate a new slice, or one that replaces `old`."""
    path = Path("spec")
    yield from validate_driver_name(spec.driver, path / "driver")
    yield from _validate_pool(spec, path / "pool")
    if old is not None:
        yield from validate_immutable(spec.pool.name, old.pool.name, path.child("pool", "name"))
        yield from validate_immutable(spec.driver, old.driver, path / "driver")
        yield from validate_immutable(spec.node_name, old.node_name, path / "nodeName")
    yield from _validate_node_selection(spec, path)
    if spec.shared_counters is not None and spec.devices is not None:
        yield invalid(path, "", "only one of `sharedCounters` or `devices` is allowed")
    devices = spec.devices or []
    advanced = any(device.taints or device.consumes_counters for device in devices)
    known = {device.name: device for device in old.devices or ()} if old is not None else {}
    per_device = bool(spec.per_device_node_selection)
    yield from validate_set(
        devices,
        MAX_DEVICES_ADVANCED if advanced else MAX_DEVICES,
        lambda device, at: _validate_device(device, known.get(device.name), at, per_device=per_device),
        lambda device: device.name,
        path / "devices",
    )
    yield from validate_set(
        spec.shared_counters or [],
        MAX_COUNTER_SETS,
        _validate_counter_set,
        lambda each: each.name,
        path / "sharedCounters",
    )


def _validate_pool(spec: ResourceSliceSpec, path: Path) -> Iterator[FieldError]:
    yield from validate_pool_name(spec.pool.name, path / "name")
    count, generation = spec.pool.resource_slice_count, spec.pool.generation
    if count <= 0:
        yield invalid(path / "resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        yield invalid(path / "generation", generation, "must be greater than or equal to zero")


def _validate_node_selection(spec: ResourceSliceSpec, path: Path) -> Iterator[FieldError]:
    found: list[str] = []
    if spec.node_name is not None:
        if spec.node_name:
            found.append("`nodeName`")
            yield from validate_dns1123_subdomain(spec.node_name, path / "nodeName")
        else:
            yield invalid(path / "nodeName", "", "must be either unset or set to a non-empty string")
    if spec.node_selector is not None:
        found.append("`nodeSelector`")
        yield from validate_node_selector(spec.node_selector, path / "nodeSelector")
        terms = spec.node_selector.node_selector_terms
        if len(terms or ()) != 1:
            at = path.child("nodeSelector", "nodeSelectorTerms")
            yield invalid(at, internal_text(terms) if terms else terms, "must have exactly one node selector term")
    for flag, name in ((spec.all_nodes, "allNodes"), (spec.per_device_node_selection, "perDeviceNodeSelection")):
        if flag:
            found.append(f"`{name}`")
        elif flag is False:
            yield invalid(path / name, flag, "must be either unset or set to true")
    if not found:
        yield required(path, _ONE_NODE_SELECTION)
    elif len(found) > 1:
        yield invalid(path, f"{{{', '.join(found)}}}", f"{_ONE_NODE_SELECTION}, but multiple fields are set")


def _validate_device(device: Device, old: Device | None, path: Path, *, per_device: bool) -> Iterator[FieldError]:
    yield from validate_dns1123_label(device.name, path / "name")
    count = len(device.attributes) + len(device.capacity)
    if count > MAX_ATTRIBUTES:
        detail = f"the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}"
        yield invalid(path, count, detail)
    for name, attribute in sorted(device.attributes.items()):
        yield from validate_qualified_name(name, path / "attributes")
        yield from _validate_attribute(attribute, (path / "attributes")[name])
    shared = bool(device.allow_multiple_allocations)
    for name, capacity in sorted(device.capacity.items()):
        yield from validate_qualified_name(name, path / "capacity")
        yield from _validate_capacity(capacity, (path / "capacity")[name], shared=shared)
    if old is None or old.taints != device.taints:
        yield from validate_items(device.taints, MAX_TAINTS, validate_taint, path / "taints")
    yield from validate_set(
        device.consumes_counters,
        MAX_CONSUMED_SETS,
        _validate_consumption,
        lambda each: each.counter_set,
        path / "consumesCounters",
    )
    yield from _validate_device_node_selection(device, path, per_device=per_device)
    yield from validate_binding_conditions(device.binding_conditions, device.binding_failure_conditions, path)


def _validate_capacity(capacity: DeviceCapacity, path: Path, *, shared: bool) -> Iterator[FieldError]:
    """Validate a capacity; `shared` is True if several claims may share the device."""
    policy = capacity.request_policy
    if policy is None:
        return
    if shared:
        yield from validate_request_policy(policy, capacity.value, path / "requestPolicy")
    else:
        yield forbidden(path / "requestPolicy", "allowMultipleAllocations must be true")


def _validate_counter_set(counter_set: CounterSet, path: Path) -> Iterator[FieldError]:
    yield from _validate_counters(counter_set.name, counter_set.counters, path, "name")


def _validate_consumption(consumption: DeviceCounterConsumption, path: Path) -> Iterator[FieldError]:
    yield from _validate_counters(consumption.counter_set, consumption.counters, path, "counterSet")


def _validate_counters(name: str, counters: dict[str, Counter], path: Path, member: str) -> Iterator[FieldError]:
    """Validate the counters of a set; `member` is the field with the name of the set."""
    yield from validate_required(is_dns1123_label, name, path / member)
    if not counters:
        yield required(path / "counters")
    elif len(counters) > MAX_COUNTERS:
        yield too_many(path / "counters", len(counters), MAX_COUNTERS)
    else:
        for counter in sorted(counters):
            yield from validate_dns1123_label(counter, path / "counters")


def _validate_device_node_selection(device: Device, path: Path, *, per_device: bool) -> Iterator[FieldError]:
    if not per_device:
        if device.node_name is not None or device.node_selector is not None or device.all_nodes is not None:
            detail = (
                "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` "
                "is set to true in the ResourceSlice spec"
            )
            yield invalid(path, None, detail)
        return
    found: list[str] = []
    if device.node_name:
        found.append("`nodeName`")
        yield from validate_dns1123_subdomain(device.node_name, path / "nodeName")
    elif device.node_name is not None:
        yield invalid(path / "nodeName", "", "must not be empty")
    if device.node_selector is not None:
        found.append("`nodeSelector`")
        yield from validate_node_selector(device.node_selector, path / "nodeSelector")
    if device.all_nodes:
        found.append("`allNodes`")
    elif device.all_nodes is not None:
        yield invalid(path / "allNodes", False, "must be either unset or set to true")
    if not found:
        yield required(path, _ONE_DEVICE_NODE_SELECTION)
    elif len(found) > 1:
        yield invalid(path, f"{{{', '.join(found)}}}", _ONE_DEVICE_NODE_SELECTION)


def _validate_attribute(attribute: DeviceAttribute, path: Path) -> Iterator[FieldError]:
    values = (attribute.bool, attribute.int, attribute.string, attribute.version)
    if attribute.string is not None and byte_length(attribute.string) > MAX_VALUE:
        yield too_long(path / "string", MAX_VALUE)
    if attribute.version is not None:
        if not _SEMVER.fullmatch(attribute.version):
            detail = "must be a string compatible with semver.org spec 2.0.0"
            yield invalid(path / "version", attribute.version, detail)
        if byte_length(attribute.version) > MAX_VALUE:
            yield too_long(path / "version", MAX_VALUE)
    if sum(value is not None for value in values) != 1:
        shown = "" if values == (None,) * 4 else _message_form(attribute)
        yield invalid(path, shown, "exactly one value must be specified")


def _message_form(attribute: DeviceAttribute) -> Verbatim:
    """Return an attribute in the form that upstream prints; its lists are always empty."""
    form = {
        "IntValue": attribute.int,
        "BoolValue": attribute.bool,
        "StringValue": attribute.string,
        "VersionValue": attribute.version,
        **dict.fromkeys(("IntValues", "BoolValues", "StringValues", "VersionValues")),
    }
    return Verbatim(encode_in_order(form).decode())


class Taint(Protocol):
    """A DeviceTaint of any version."""

    key: str
    value: str
    effect: str


def validate_taint(taint: Taint, path: Path, old: Taint | None = None) -> Iterator[FieldError]:
    """Validate a device's taint; the unchanged effect of `old` is accepted."""
    yield from validate_label_name(taint.key, path / "key")
    yield from validate_with(is_valid_label_value, taint.value, path / "value")
    if old is not None and old.effect == taint.effect:
        return
    yield from validate_choice(taint.effect, EFFECTS, path / "effect")
