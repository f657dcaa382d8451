"""DeviceTaintRules: taints of selected devices, as if their drivers had set them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.resource import v1beta2
from steersman.api.resource.v1alpha3 import (
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, too_many
from steersman.machinery.validation.conditions import validate_conditions
from steersman.machinery.validation.leaves import validate_dns1123_label
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.values import times
from steersman.registry.older_version import deprecated, older_version
from steersman.registry.resource.names import validate_pool_name
from steersman.registry.resource.slice_validation import validate_taint
from steersman.registry.validation.drivers import validate_driver_name
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

MAX_CONDITIONS: Final = 8

_SELECTOR: Final = Path("spec", "deviceSelector")
_CONDITIONS: Final = Path("status", "conditions")


def set_defaults(rule: DeviceTaintRule | v1beta2.DeviceTaintRule) -> None:
    """Set the defaults: a taint begins now."""
    if rule.spec.taint.time_added is None:
        rule.spec.taint.time_added = times.now()


def _validate_selector(selector: DeviceTaintSelector) -> Iterator[FieldError]:
    if selector.driver is not None:
        yield from validate_driver_name(selector.driver, _SELECTOR / "driver")
    if selector.pool is not None:
        yield from validate_pool_name(selector.pool, _SELECTOR / "pool")
    if selector.device is not None:
        yield from validate_dns1123_label(selector.device, _SELECTOR / "device")


def _validate_spec(spec: DeviceTaintRuleSpec, old: DeviceTaintRuleSpec | None) -> Iterator[FieldError]:
    if spec.device_selector is not None:
        yield from _validate_selector(spec.device_selector)
    yield from validate_taint(spec.taint, Path("spec", "taint"), None if old is None else old.taint)


class DeviceTaintRuleStrategy(Strategy[DeviceTaintRule]):
    resets = ("status",)
    bumps_generation_on = ("spec",)

    def validate(self, ctx: Context, rule: DeviceTaintRule) -> Iterator[FieldError]:
        return _validate_spec(rule.spec, None)

    def prepare_for_update(self, ctx: Context, new: DeviceTaintRule, old: DeviceTaintRule) -> None:
        """Restart the time of a taint whose effect changed, unless the client sets it."""
        taint, before = new.spec.taint, old.spec.taint
        if taint.effect != before.effect and taint.time_added == before.time_added:
            taint.time_added = times.now()
        super().prepare_for_update(ctx, new, old)

    def validate_update(self, ctx: Context, new: DeviceTaintRule, old: DeviceTaintRule) -> Iterator[FieldError]:
        return _validate_spec(new.spec, old.spec)


class DeviceTaintRuleStatusStrategy(StatusStrategy[DeviceTaintRule]):
    resets = ("spec", "metadata")

    def validate_update(self, ctx: Context, new: DeviceTaintRule, old: DeviceTaintRule) -> Iterator[FieldError]:
        conditions = new.status.conditions
        yield from validate_conditions(conditions, _CONDITIONS)
        if len(conditions) > MAX_CONDITIONS:
            yield too_many(_CONDITIONS, len(conditions), MAX_CONDITIONS)


def _time_added(rule: DeviceTaintRule) -> str:
    added = rule.spec.taint.time_added
    return times.age(added, times.unix_now()) if added else ""


DEVICE_TAINT_RULES: Final = Resource(
    kind=built_in(DeviceTaintRule, default=set_defaults),
    plural="devicetaintrules",
    namespaced=False,
    strategy=DeviceTaintRuleStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Key", lambda r: r.spec.taint.key),
        Column("Value", lambda r: r.spec.taint.value),
        Column("Effect", lambda r: r.spec.taint.effect),
        Column("TimeAdded", _time_added),
        AGE,
    ),
    subresources=(Subresource(name="status", strategy=DeviceTaintRuleStatusStrategy()),),
    returns_deleted_object=True,
    storage_version_hash="DJ3UJ0fj8MI=",
    deprecation_warning=deprecated(DeviceTaintRule, "1.36", "1.39"),
    other_versions=(older_version(DeviceTaintRule, v1beta2.DeviceTaintRule, default=set_defaults),),
)
