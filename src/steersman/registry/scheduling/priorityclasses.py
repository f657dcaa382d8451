"""PriorityClasses: names for the priorities of pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.scheduling.v1 import PriorityClass
from steersman.kinds.built_in import built_in
from steersman.machinery.errors import status as errors
from steersman.machinery.errors.field import FieldError, Path, forbidden, not_supported, required
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def set_defaults(priority_class: PriorityClass) -> None:
    """Set the defaults: pods of the class may preempt others."""
    if priority_class.preemption_policy is None:
        priority_class.preemption_policy = "PreemptLowerPriority"


SYSTEM_PREFIX: Final = "system-"
HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""The classes of every cluster, with their values."""
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")


def _system_class_error(priority_class: PriorityClass) -> str:
    name = priority_class.metadata.name
    value = SYSTEM_CLASSES.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if priority_class.value != value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if priority_class.global_default else ""


class PriorityClassStrategy(Strategy[PriorityClass]):
    immutable = ("preemptionPolicy",)

    def prepare_for_create(self, ctx: Context, priority_class: PriorityClass) -> None:
        priority_class.metadata.generation = 1

    def validate(self, ctx: Context, priority_class: PriorityClass) -> Iterator[FieldError]:
        name = priority_class.metadata.name
        if name.startswith(SYSTEM_PREFIX):
            if error := _system_class_error(priority_class):
                detail = f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only."
                yield forbidden(Path("metadata", "name"), f"{detail} error: {error}")
        elif priority_class.value > HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            yield forbidden(Path("value"), detail)
        policy = priority_class.preemption_policy
        if policy == "":
            yield required(Path("preemptionPolicy"))
        elif policy is not None and policy not in PREEMPTION_POLICIES:
            yield not_supported(Path("preemptionPolicy"), policy, PREEMPTION_POLICIES)

    def validate_update(self, ctx: Context, new: PriorityClass, old: PriorityClass) -> Iterator[FieldError]:
        if new.value != old.value:
            yield forbidden(Path("value"), "may not be changed in an update.")
        yield from super().validate_update(ctx, new, old)

    def check_delete(self, ctx: Context, name: str) -> None:
        if name in SYSTEM_CLASSES:
            resource = GroupResource(PRIORITY_CLASSES.group, PRIORITY_CLASSES.plural)
            raise errors.forbidden(resource, name, "this is a system priority class and cannot be deleted")


PRIORITY_CLASSES = Resource(
    kind=built_in(PriorityClass, default=set_defaults),
    plural="priorityclasses",
    namespaced=False,
    short_names=("pc",),
    strategy=PriorityClassStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Value", lambda c: c.value, type="integer"),
        Column("Global-Default", lambda c: c.global_default, type="boolean"),
        AGE,
        Column("PreemptionPolicy", lambda c: c.preemption_policy or ""),
    ),
    storage_version_hash="1QwjyaZjj3Y=",
)
