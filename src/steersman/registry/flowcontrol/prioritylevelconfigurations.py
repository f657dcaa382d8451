"""PriorityLevelConfigurations: the number of concurrent requests of a level, and the queuing of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from steersman.api.flowcontrol.v1 import (
    PriorityLevelConfiguration,
    QueuingConfiguration,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.flowcontrol.validation import validate_conditions, validate_priority_level
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


def set_defaults(level: PriorityLevelConfiguration) -> None:
    """Set the defaults: 30 shares, none of them lendable; 64 queues of 50 requests, eight of them for a flow."""
    if (limited := level.spec.limited) is not None:
        if limited.nominal_concurrency_shares is None:
            limited.nominal_concurrency_shares = 30
        if limited.lendable_percent is None:
            limited.lendable_percent = 0
        if (queuing := limited.limit_response.queuing) is not None:
            queuing.hand_size = queuing.hand_size or 8
            queuing.queues = queuing.queues or 64
            queuing.queue_length_limit = queuing.queue_length_limit or 50
    if (exempt := level.spec.exempt) is not None:
        if exempt.nominal_concurrency_shares is None:
            exempt.nominal_concurrency_shares = 0
        if exempt.lendable_percent is None:
            exempt.lendable_percent = 0


class PriorityLevelConfigurationStrategy(Strategy[PriorityLevelConfiguration]):
    resets = ("status",)
    bumps_generation_on = ("spec",)

    def validate(self, ctx: Context, level: PriorityLevelConfiguration) -> Iterator[FieldError]:
        return validate_priority_level(level)

    def validate_update(
        self, ctx: Context, new: PriorityLevelConfiguration, old: PriorityLevelConfiguration
    ) -> Iterator[FieldError]:
        return validate_priority_level(new)


class PriorityLevelConfigurationStatusStrategy(StatusStrategy[PriorityLevelConfiguration]):
    resets = ("spec", "metadata")

    def prepare_for_update(
        self, ctx: Context, new: PriorityLevelConfiguration, old: PriorityLevelConfiguration
    ) -> None:
        new.metadata = replace(old.metadata, managed_fields=new.metadata.managed_fields)
        new.spec = old.spec

    def validate_update(
        self, ctx: Context, new: PriorityLevelConfiguration, old: PriorityLevelConfiguration
    ) -> Iterator[FieldError]:
        return validate_conditions(new.status.conditions)


def _shares(level: PriorityLevelConfiguration) -> int | str | None:
    return "<none>" if level.spec.limited is None else level.spec.limited.nominal_concurrency_shares


def _queuing(number: Callable[[QueuingConfiguration], int]) -> Callable[[PriorityLevelConfiguration], int | str]:
    def cell(level: PriorityLevelConfiguration) -> int | str:
        limited = level.spec.limited
        queuing = None if limited is None else limited.limit_response.queuing
        return "<none>" if queuing is None else number(queuing)

    return cell


PRIORITY_LEVEL_CONFIGURATIONS = Resource(
    kind=built_in(PriorityLevelConfiguration, default=set_defaults),
    plural="prioritylevelconfigurations",
    namespaced=False,
    strategy=PriorityLevelConfigurationStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Type", lambda level: level.spec.type),
        Column("NominalConcurrencyShares", _shares),
        Column("Queues", _queuing(lambda q: q.queues)),
        Column("HandSize", _queuing(lambda q: q.hand_size)),
        Column("QueueLengthLimit", _queuing(lambda q: q.queue_length_limit)),
        AGE,
    ),
    subresources=(Subresource(name="status", strategy=PriorityLevelConfigurationStatusStrategy()),),
    storage_version_hash="Kir5PVfvNeI=",
)
