"""Validation of the amounts of a shared device's capacity that claims may request (CapacityRequestPolicy)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.resource.v1 import CapacityRequestPolicy, CapacityRequestPolicyRange
from steersman.machinery.errors.field import FieldError, Path, duplicate, forbidden, invalid, required, too_many
from steersman.machinery.values.quantity import Quantity, parse

MAX_VALUES: Final = 10

_ONE_POLICY: Final = (
    'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
)


def validate_request_policy(policy: CapacityRequestPolicy, capacity: str, path: Path) -> Iterator[FieldError]:
    """Validate a policy: valid values or a range, with a default among them; without either any amount is valid."""
    values, limits = policy.valid_values, policy.valid_range
    if values and limits is not None:
        yield forbidden(path, _ONE_POLICY)
        return
    kind = "validValues" if values else "validRange"
    if policy.default is None:
        if values or limits is not None:
            yield required(path / "default", f"required when {kind} is defined")
    elif values:
        yield from _validate_values(values, policy.default, capacity, path / kind)
    elif limits is not None:
        yield from _validate_range(limits, policy.default, capacity, path / kind)


def _validate_values(values: list[str], default: str, capacity: str, path: Path) -> Iterator[FieldError]:
    amounts = [parse(each) for each in values]
    for index in range(1, len(amounts)):
        if amounts[index] < amounts[index - 1]:
            yield invalid(path[index], values[index], "values must be sorted in ascending order")
    found = False
    if len(values) > MAX_VALUES:
        yield too_many(path, len(values), MAX_VALUES)
    else:
        most, usual = parse(capacity), parse(default)
        for index, amount in enumerate(amounts):
            found = found or amount == usual
            if most < amount:
                yield invalid(path[index], values[index], f"option is larger than capacity value: {capacity}")
        seen: set[int] = set()
        for index, amount in enumerate(amounts):
            whole = amount.as_int()  # fractions are rounded up
            if whole in seen:
                yield duplicate(path[index], str(whole))
            seen.add(whole)
    if not found:
        yield invalid(path, default, "default value is not valid according to the requestPolicy")


def _validate_range(
    limits: CapacityRequestPolicyRange, default: str, capacity: str, path: Path
) -> Iterator[FieldError]:
    if limits.min is None:
        yield required(path / "min", "required when validRange is defined")
        return
    least, usual, most = parse(limits.min), parse(default), parse(capacity)
    if most < least:
        yield invalid(path / "min", limits.min, f"min is larger than capacity value: {capacity}")
    if usual < least:
        yield invalid(path / "min", default, f"default is less than min: {limits.min}")
    if limits.max is not None:
        highest = parse(limits.max)
        if highest < least:
            yield invalid(path / "max", limits.min, f"min is larger than max: {limits.max}")
        if most < highest:
            yield invalid(path / "max", limits.max, f"max is larger than capacity value: {capacity}")
        if highest < usual:
            yield invalid(path / "max", default, f"default is more than max: {limits.max}")
    if limits.step is not None:
        yield from _validate_step(limits, limits.step, least, default, capacity, path / "step")


def _validate_step(
    limits: CapacityRequestPolicyRange, text: str, least: Quantity, default: str, capacity: str, path: Path
) -> Iterator[FieldError]:
    step = parse(text)
    first = least + step
    if parse(capacity) < first:
        yield invalid(path, text, f"one step {first} is larger than capacity value: {capacity}")
    size = step.as_int()
    if size == 0:
        # kube-apiserver 1.36 divides by the step and crashes the request
        yield invalid(path, text, "must be greater than zero")
        return
    for value in (default, limits.max):
        if value is not None and (parse(value).as_int() - least.as_int()) % size != 0:
            detail = f"value is not a multiple of a given step ({text}) from ({limits.min})"
            yield invalid(path, value, detail)
