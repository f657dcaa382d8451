"""PriorityClasses: names for how much a pod matters."""

from __future__ import annotations

from steersman.api.scheduling.v1 import PriorityClass
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def set_defaults(priority_class: PriorityClass) -> None:
    """Pods of it may push out others."""
    if priority_class.preemption_policy is None:
        priority_class.preemption_policy = "PreemptLowerPriority"


class PriorityClassStrategy(Strategy[PriorityClass]):
    def prepare_for_create(self, ctx: Context, priority_class: PriorityClass) -> None:
        priority_class.metadata.generation = 1


PRIORITY_CLASSES = Resource(
    kind=PriorityClass,
    group="scheduling.k8s.io",
    plural="priorityclasses",
    namespaced=False,
    short_names=("pc",),
    strategy=PriorityClassStrategy(),
    name_validator=name_is_dns_subdomain,
    default=set_defaults,
    columns=(
        Column("Value", lambda c: c.value, type="integer"),
        Column("Global-Default", lambda c: c.global_default, type="boolean"),
        AGE,
        Column("PreemptionPolicy", lambda c: c.preemption_policy or ""),
    ),
    storage_version_hash="1QwjyaZjj3Y=",
)
