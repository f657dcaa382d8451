"""PodDisruptionBudgets: how many of some pods may be away at the same time by somebody's will."""

from __future__ import annotations

from steersman.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetStatus
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


class PodDisruptionBudgetStrategy(Strategy[PodDisruptionBudget]):
    allow_unconditional_update = False

    def prepare_for_create(self, ctx: Context, budget: PodDisruptionBudget) -> None:
        budget.status = PodDisruptionBudgetStatus()
        budget.metadata.generation = 1

    def prepare_for_update(self, ctx: Context, new: PodDisruptionBudget, old: PodDisruptionBudget) -> None:
        new.status = old.status
        if new.spec != old.spec:
            new.metadata.generation = old.metadata.generation + 1


class PodDisruptionBudgetStatusStrategy(StatusStrategy[PodDisruptionBudget]):
    allow_unconditional_update = False


def _number(value: int | str | None) -> str:
    return "N/A" if value is None else str(value)


POD_DISRUPTION_BUDGETS = Resource(
    kind=PodDisruptionBudget,
    group="policy",
    plural="poddisruptionbudgets",
    short_names=("pdb",),
    strategy=PodDisruptionBudgetStrategy(),
    name_validator=name_is_path_segment,
    columns=(
        Column(
            "Min Available",
            lambda b: _number(b.spec.min_available),
            description="The minimum number of pods that must be available.",
        ),
        Column(
            "Max Unavailable",
            lambda b: _number(b.spec.max_unavailable),
            description="The maximum number of pods that may be unavailable.",
        ),
        Column(
            "Allowed Disruptions",
            lambda b: b.status.disruptions_allowed,
            type="integer",
            description="Calculated number of pods that may be disrupted at this time.",
        ),
        AGE,
    ),
    subresources=(Subresource(name="status", strategy=PodDisruptionBudgetStatusStrategy()),),
    storage_version_hash="EVWiDmWqyJw=",
)
