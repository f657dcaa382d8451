"""Validation of claims for devices (kubernetes `pkg/apis/resource/validation`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Raw

from steersman.api.resource.v1 import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    OpaqueDeviceConfiguration,
)
from steersman.machinery.codec.strict import DecodeError, decode_untyped
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
    too_long,
)
from steersman.machinery.validation.formats import byte_length, is_dns1123_subdomain, is_valid_label_value
from steersman.machinery.validation.leaves import (
    validate_dns1123_label,
    validate_required,
    validate_with,
)
from steersman.machinery.validation.selectors import validate_label_name
from steersman.registry.resource.limits import (
    MAX_ALTERNATIVES,
    MAX_CONFIGS,
    MAX_CONSTRAINTS,
    MAX_EXPRESSION,
    MAX_PARAMETERS,
    MAX_REQUESTS,
    MAX_SELECTORS,
)
from steersman.registry.resource.names import validate_fully_qualified_name, validate_items, validate_set
from steersman.registry.resource.selector_verdicts import NO_VERDICTS, Verdicts, check_expressions
from steersman.registry.validation.drivers import validate_driver_name

EFFECTS: Final = ("NoExecute", "NoSchedule", "None")

RequestNames = Mapping[str, frozenset[str]]
"""Name of a request -> names of its alternatives."""

_ONE_OF: Final = "exactly one of `exactly` or `firstAvailable` is required"
_NOT_A_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def request_names(claim: DeviceClaim) -> RequestNames:
    """Return the names to which allocations and configurations may refer."""
    return {
        request.name: frozenset(alternative.name for alternative in request.first_available)
        for request in claim.requests or ()
    }


def validate_device_claim(claim: DeviceClaim, path: Path, verdicts: Verdicts = NO_VERDICTS) -> Iterator[FieldError]:
    """Validate requests, constraints and configurations. `verdicts` on selectors save compiling them here."""
    names = request_names(claim)

    def validate_constraint(constraint: DeviceConstraint, at: Path) -> Iterator[FieldError]:
        yield from validate_request_references(constraint.requests, at / "requests", names)
        if constraint.match_attribute is not None:
            yield from validate_fully_qualified_name(constraint.match_attribute, at / "matchAttribute")
        elif constraint.distinct_attribute is not None:
            yield from validate_fully_qualified_name(constraint.distinct_attribute, at / "distinctAttribute")
        else:
            # Upstream says so although none is set.
            yield required(
                at,
                'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set',
            )

    def validate_config(config: DeviceClaimConfiguration, at: Path) -> Iterator[FieldError]:
        yield from validate_request_references(config.requests, at / "requests", names)
        yield from validate_configuration(config.opaque, at)

    def validate_request(request: DeviceRequest, at: Path) -> Iterator[FieldError]:
        return _validate_request(request, at, verdicts)

    requests = claim.requests or []
    yield from validate_set(requests, MAX_REQUESTS, validate_request, lambda each: each.name, path / "requests")
    yield from validate_items(claim.constraints, MAX_CONSTRAINTS, validate_constraint, path / "constraints")
    yield from validate_items(claim.config, MAX_CONFIGS, validate_config, path / "config")


def _validate_request(request: DeviceRequest, path: Path, verdicts: Verdicts) -> Iterator[FieldError]:
    yield from validate_dns1123_label(request.name, path / "name")
    if request.exactly is None and not request.first_available:
        yield required(path, _ONE_OF)
    elif request.exactly is not None and request.first_available:
        yield invalid(path, None, f"{_ONE_OF}, but multiple fields are set")
    elif request.exactly is not None:
        yield from _validate_device(request.exactly, path / "exactly", verdicts)
    else:
        yield from validate_set(
            request.first_available,
            MAX_ALTERNATIVES,
            lambda each, at: _validate_alternative(each, at, verdicts),
            lambda each: each.name,
            path / "firstAvailable",
        )


def _validate_alternative(request: DeviceSubRequest, path: Path, verdicts: Verdicts) -> Iterator[FieldError]:
    yield from validate_dns1123_label(request.name, path / "name")
    yield from _validate_device(request, path, verdicts)


def _validate_device(
    request: ExactDeviceRequest | DeviceSubRequest, path: Path, verdicts: Verdicts
) -> Iterator[FieldError]:
    yield from validate_required(is_dns1123_subdomain, request.device_class_name, path / "deviceClassName")
    yield from validate_items(
        request.selectors, MAX_SELECTORS, lambda each, at: validate_selector(each, at, verdicts), path / "selectors"
    )
    if request.allocation_mode == "All":
        if request.count != 0:
            yield invalid(path / "count", request.count, "must not be specified when allocationMode is 'All'")
    elif request.allocation_mode == "ExactCount":
        if request.count <= 0:
            yield invalid(path / "count", request.count, "must be greater than zero")
    else:
        yield not_supported(path / "allocationMode", request.allocation_mode, ("All", "ExactCount"))
    for index, toleration in enumerate(request.tolerations):
        yield from _validate_toleration(toleration, (path / "tolerations")[index])


def _validate_toleration(toleration: DeviceToleration, path: Path) -> Iterator[FieldError]:
    if toleration.key:
        yield from validate_label_name(toleration.key, path / "key")
    if toleration.operator == "Exists":
        if toleration.value:
            yield invalid(path / "value", toleration.value, "must be empty for operator `Exists`")
    elif toleration.operator == "Equal":
        yield from validate_with(is_valid_label_value, toleration.value, path / "value")
    elif not toleration.operator:
        yield required(path / "operator")
    else:
        yield not_supported(path / "operator", toleration.operator, ("Equal", "Exists"))
    if toleration.effect and toleration.effect not in EFFECTS:
        yield not_supported(path / "effect", toleration.effect, EFFECTS)


def validate_selector(
    selector: DeviceSelector, path: Path, verdicts: Verdicts = NO_VERDICTS, *, stored: bool = False
) -> Iterator[FieldError]:
    """Validate a CEL expression over a device; `stored` if it was accepted before, perhaps by another version."""
    if selector.cel is None:
        yield required(path / "cel")
        return
    expression, path = selector.cel.expression, path.child("cel", "expression")
    if byte_length(expression) > MAX_EXPRESSION:
        yield too_long(path, MAX_EXPRESSION)
        return
    verdict = verdicts.get(expression) or check_expressions([expression], stored=stored)[expression]
    if verdict.error is not None:
        yield invalid(path, expression, verdict.error)
    elif verdict.failure is not None:
        # Upstream reports an internal error.
        yield internal(path, verdict.failure)
    elif verdict.is_too_complex:
        yield forbidden(path, "too complex, exceeds cost limit")


def validate_request_references(references: list[str], path: Path, names: RequestNames) -> Iterator[FieldError]:
    """Validate references to requests, which must be unique."""
    yield from validate_set(
        references, MAX_REQUESTS, lambda name, at: validate_request_reference(name, at, names), str, path
    )


def validate_request_reference(name: str, path: Path, names: RequestNames) -> Iterator[FieldError]:
    """Validate a reference to a request, or to one of its alternatives: `request/alternative`."""
    segments = name.split("/")
    if len(segments) > 2:
        yield invalid(path, name, _NOT_A_REQUEST)
        return
    for segment in segments:
        yield from validate_dns1123_label(segment, path)
    alternatives = names.get(segments[0])
    if alternatives is None or (len(segments) == 2 and segments[1] not in alternatives):
        yield invalid(path, name, _NOT_A_REQUEST)


def validate_configuration(opaque: OpaqueDeviceConfiguration | None, path: Path) -> Iterator[FieldError]:
    """Validate a driver's configuration, whose parameters only the driver understands."""
    if opaque is None:
        yield required(path / "opaque")
        return
    yield from validate_driver_name(opaque.driver, path.child("opaque", "driver"))
    yield from validate_json_object(opaque.parameters, path.child("opaque", "parameters"), MAX_PARAMETERS)


def validate_json_object(raw: Raw | None, path: Path, maximum: int) -> Iterator[FieldError]:
    """Validate a JSON object of at most `maximum` bytes."""
    content = b"" if raw is None else bytes(raw)
    if not content:
        yield required(path)
    elif len(content) > maximum:
        yield too_long(path, maximum)
    else:
        try:
            value: Any = decode_untyped(content)
        except DecodeError as error:
            yield invalid(path, "<value omitted>", f"error parsing data as JSON: {error}")
            return
        if value is None:
            yield required(path)
        elif not isinstance(value, dict):
            yield invalid(path, "<value omitted>", "must be a valid JSON object")
