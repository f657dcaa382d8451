"""Validation of the status of claims, which schedulers and drivers write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import astuple

from steersman.api.resource.v1 import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    Verbatim,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
)
from steersman.machinery.validation.conditions import validate_conditions
from steersman.machinery.validation.formats import byte_length
from steersman.machinery.validation.ip import is_valid_interface_address
from steersman.machinery.validation.leaves import (
    FIELD_IMMUTABLE,
    validate_choice,
    validate_dns1123_label,
    validate_unique,
)
from steersman.machinery.validation.selectors import validate_label_name
from steersman.registry.pod_template.validation.scheduling import validate_node_selector
from steersman.registry.printing.internal_form import internal_text
from steersman.registry.resource.claim_validation import (
    RequestNames,
    request_names,
    validate_configuration,
    validate_json_object,
    validate_request_reference,
    validate_request_references,
)
from steersman.registry.resource.names import validate_items, validate_pool_name, validate_set, validate_uuid
from steersman.registry.validation.drivers import validate_driver_name

MAX_CONSUMERS: Final = 256
MAX_RESULTS: Final = 32
MAX_CONFIGS: Final = 64
MAX_BINDING_CONDITIONS: Final = 4
MAX_CONDITIONS: Final = 8
MAX_DATA: Final = 10 * 1024
MAX_IPS: Final = 16
MAX_INTERFACE_NAME: Final = 256
MAX_HARDWARE_ADDRESS: Final = 128

DeviceId = tuple[str, str, str, str]


def device_id(device: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> DeviceId:
    """Return driver, pool, device, and share ("" for none)."""
    return (device.driver, device.pool, device.device, device.share_id or "")


def validate_claim_status(new: ResourceClaim, old: ResourceClaim) -> Iterator[FieldError]:
    """Validate an update through `/status`."""
    status, before, path = new.status, old.status, Path("status")
    yield from validate_set(
        status.reserved_for, MAX_CONSUMERS, _validate_consumer, lambda each: each.uid, path / "reservedFor"
    )
    allocated = set() if status.allocation is None else {device_id(e) for e in status.allocation.devices.results}
    yield from _validate_devices(status.devices, allocated, path / "devices")
    if status.reserved_for:
        if status.allocation is None:
            yield forbidden(path / "reservedFor", "may not be specified when `allocated` is not set")
        elif new.metadata.deletion_timestamp and _adds_consumers(status, before):
            detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            yield forbidden(path / "reservedFor", detail)
    if status.allocation is None:
        return
    if before.allocation is None:
        yield from _validate_allocation(status.allocation, path / "allocation", request_names(new.spec.devices))
    elif status.allocation != before.allocation:
        yield invalid(path / "allocation", internal_text(status.allocation), FIELD_IMMUTABLE)


def _adds_consumers(status: ResourceClaimStatus, before: ResourceClaimStatus) -> bool:
    known = {astuple(each) for each in before.reserved_for}
    return any(astuple(each) not in known for each in status.reserved_for)


def _validate_consumer(consumer: ResourceClaimConsumerReference, path: Path) -> Iterator[FieldError]:
    for value, name in ((consumer.resource, "resource"), (consumer.name, "name"), (consumer.uid, "uid")):
        if not value:
            yield required(path / name)


def _validate_devices(
    devices: list[AllocatedDeviceStatus], allocated: set[DeviceId], path: Path
) -> Iterator[FieldError]:
    seen: set[DeviceId] = set()
    for index, device in enumerate(devices):
        yield from _validate_device(device, allocated, path[index])
    for index, device in enumerate(devices):
        if device_id(device) in seen:
            yield duplicate(path[index], _message_form(device))
        seen.add(device_id(device))


def _message_form(device: AllocatedDeviceStatus) -> Verbatim:
    names = ("Driver", "Pool", "Device", "ShareID")
    return Verbatim(encode_in_order(dict(zip(names, device_id(device), strict=True))).decode())


def _validate_device(device: AllocatedDeviceStatus, allocated: set[DeviceId], path: Path) -> Iterator[FieldError]:
    yield from validate_driver_name(device.driver, path / "driver")
    yield from validate_pool_name(device.pool, path / "pool")
    yield from validate_dns1123_label(device.device, path / "device")
    if device.share_id is not None:
        yield from validate_uuid(device.share_id, path / "shareID")
    if device_id(device) not in allocated:
        yield invalid(path, _message_form(device), "must be an allocated device in the claim")
    conditions = device.conditions or []
    if len(conditions) > MAX_CONDITIONS:
        yield too_many(path / "conditions", len(conditions), MAX_CONDITIONS)
    yield from validate_conditions(conditions, path / "conditions")
    if device.data is not None:
        yield from validate_json_object(device.data, path / "data", MAX_DATA)
    if device.network_data is not None:
        yield from _validate_network_data(device.network_data, path / "networkData")


def _validate_network_data(data: NetworkDeviceData, path: Path) -> Iterator[FieldError]:
    if byte_length(data.interface_name) > MAX_INTERFACE_NAME:
        yield too_long(path / "interfaceName", MAX_INTERFACE_NAME)
    if byte_length(data.hardware_address) > MAX_HARDWARE_ADDRESS:
        yield too_long(path / "hardwareAddress", MAX_HARDWARE_ADDRESS)
    yield from validate_set(data.ips, MAX_IPS, is_valid_interface_address, str, path / "ips")


def _validate_allocation(allocation: AllocationResult, path: Path, names: RequestNames) -> Iterator[FieldError]:
    def validate_result(result: DeviceRequestAllocationResult, at: Path) -> Iterator[FieldError]:
        yield from validate_request_reference(result.request, at / "request", names)
        yield from validate_driver_name(result.driver, at / "driver")
        yield from validate_pool_name(result.pool, at / "pool")
        yield from validate_dns1123_label(result.device, at / "device")
        yield from validate_binding_conditions(result.binding_conditions, result.binding_failure_conditions, at)
        if result.share_id is not None:
            yield from validate_uuid(result.share_id, at / "shareID")

    def validate_config(config: DeviceAllocationConfiguration, at: Path) -> Iterator[FieldError]:
        yield from validate_choice(config.source, ("FromClaim", "FromClass"), at / "source")
        yield from validate_request_references(config.requests, at / "requests", names)
        yield from validate_configuration(config.opaque, at)

    devices = path / "devices"
    yield from validate_items(allocation.devices.results, MAX_RESULTS, validate_result, devices / "results")
    yield from validate_items(allocation.devices.config, MAX_CONFIGS, validate_config, devices / "config")
    if allocation.node_selector is not None:
        yield from validate_node_selector(allocation.node_selector, path / "nodeSelector")


def validate_binding_conditions(conditions: list[str], failures: list[str], path: Path) -> Iterator[FieldError]:
    """Validate the conditions for which the binding of a pod waits, and those that make it fail."""
    good, bad = path / "bindingConditions", path / "bindingFailureConditions"
    yield from validate_items(conditions, MAX_BINDING_CONDITIONS, validate_label_name, good)
    yield from validate_items(failures, MAX_BINDING_CONDITIONS, validate_label_name, bad)
    wanted: set[str] = set()
    for index, condition in enumerate(conditions):
        yield from validate_unique(condition, wanted, good[index])
    seen: set[str] = set()
    for index, condition in enumerate(failures):
        yield from validate_unique(condition, seen, bad[index])
        if condition in wanted:
            yield invalid(bad[index], condition, "bindingFailureConditions must not overlap with bindingConditions")
    if failures and not conditions:
        yield invalid(good, None, "bindingConditions are required to use bindingFailureConditions")
    if conditions and not failures:
        yield invalid(bad, None, "bindingFailureConditions are required to use bindingConditions")
