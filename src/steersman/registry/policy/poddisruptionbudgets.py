"""PodDisruptionBudgets: limits on the number of pods that voluntary disruptions may take down at one time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported
from steersman.machinery.validation.conditions import validate_conditions
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.machinery.validation.selectors import STRICT, LabelSelectorOptions, validate_label_selector
from steersman.registry.printing.internal_form import internal_text
from steersman.registry.validation.counts import validate_at_most_all, validate_counters, validate_int_or_percent
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")
COUNTERS: Final = (
    ("disruptions_allowed", "disruptionsAllowed"),
    ("current_healthy", "currentHealthy"),
    ("desired_healthy", "desiredHealthy"),
    ("expected_pods", "expectedPods"),
)


def _validate(spec: PodDisruptionBudgetSpec, options: LabelSelectorOptions) -> Iterator[FieldError]:
    path = Path("spec")
    if spec.min_available is not None and spec.max_unavailable is not None:
        yield invalid(path, internal_text(spec), "minAvailable and maxUnavailable cannot be both set")
    for value, name in ((spec.min_available, "minAvailable"), (spec.max_unavailable, "maxUnavailable")):
        if value is not None:
            yield from validate_int_or_percent(value, path / name)
            yield from validate_at_most_all(value, path / name)
    yield from validate_label_selector(spec.selector, path / "selector", options)
    policy = spec.unhealthy_pod_eviction_policy
    if policy is not None and policy not in EVICTION_POLICIES:
        yield not_supported(path / "unhealthyPodEvictionPolicy", policy, EVICTION_POLICIES)


class PodDisruptionBudgetStrategy(Strategy[PodDisruptionBudget]):
    allow_unconditional_update = False
    metadata_on_update = "once"
    resets = ("status",)
    bumps_generation_on = ("spec",)

    def validate(self, ctx: Context, budget: PodDisruptionBudget) -> Iterator[FieldError]:
        return _validate(budget.spec, STRICT)

    def validate_update(self, ctx: Context, new: PodDisruptionBudget, old: PodDisruptionBudget) -> Iterator[FieldError]:
        was_invalid = any(True for _ in validate_label_selector(old.spec.selector, Path()))
        return _validate(new.spec, LabelSelectorOptions(allow_invalid_label_value=was_invalid))


class PodDisruptionBudgetStatusStrategy(StatusStrategy[PodDisruptionBudget]):
    allow_unconditional_update = False
    metadata_on_update = "once"

    def validate_update(self, ctx: Context, new: PodDisruptionBudget, old: PodDisruptionBudget) -> Iterator[FieldError]:
        path = Path("status")
        yield from validate_conditions(new.status.conditions, path / "conditions")
        yield from validate_counters(new.status, COUNTERS, path)


def _number(value: int | str | None) -> str:
    return "N/A" if value is None else str(value)


POD_DISRUPTION_BUDGETS = Resource(
    kind=built_in(PodDisruptionBudget),
    plural="poddisruptionbudgets",
    short_names=("pdb",),
    strategy=PodDisruptionBudgetStrategy(),
    name_validator=name_is_path_segment,
    any_finalizers=True,
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
