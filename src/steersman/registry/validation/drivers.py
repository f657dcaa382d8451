"""Validation of drivers and their parameters, for several storage kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from steersman.machinery.errors.field import FieldError, Path, invalid, required, too_long
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.formats import byte_length, is_dns1123_subdomain, is_qualified_name, total_length
from steersman.machinery.validation.leaves import validate_with

MAX_PARAMETERS: Final = 512
MAX_PARAMETERS_SIZE: Final = 256 * 1024
"""Bytes of all names and values."""
MAX_DRIVER_NAME: Final = 63


def validate_provisioner(name: str, path: Path) -> Iterator[FieldError]:
    """Validate a provisioner: a name with or without a prefix, in any case."""
    if not name:
        yield required(path)
        return
    yield from validate_with(is_qualified_name, to_lower(name), path)


def validate_parameters(parameters: Mapping[str, str], path: Path, *, needed: bool) -> Iterator[FieldError]:
    """Validate the parameters of a driver, whose meaning only the driver knows."""
    if len(parameters) > MAX_PARAMETERS:
        yield too_long(path, MAX_PARAMETERS)
        return
    if "" in parameters:
        yield invalid(path, "", "field can not be empty.")
    if total_length(parameters, parameters.values(), most=MAX_PARAMETERS_SIZE) > MAX_PARAMETERS_SIZE:
        yield too_long(path, MAX_PARAMETERS_SIZE)
    if needed and not parameters:
        yield required(path, "must contain at least one key/value pair")


def validate_driver_name(name: str, path: Path) -> Iterator[FieldError]:
    """Validate a CSI driver's name: a DNS name in any case."""
    if not name:
        yield required(path)
        return
    if byte_length(name) > MAX_DRIVER_NAME:
        yield too_long(path, MAX_DRIVER_NAME)
    for message in is_dns1123_subdomain(to_lower(name)):
        yield invalid(path, name, message)
