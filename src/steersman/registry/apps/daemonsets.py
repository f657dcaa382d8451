"""DaemonSets: a pod on every node, or on selected nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.apps.v1 import DaemonSet, DaemonSetUpdateStrategy, RollingUpdateDaemonSet
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required
from steersman.machinery.errors.go_numbers import parse_int
from steersman.machinery.validation.leaves import validate_nonnegative
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.selectors import (
    STRICT,
    LabelSelectorOptions,
    label_selector_has_invalid_label_value,
    validate_label_selector,
)
from steersman.registry.apps.update_strategy import strategy_message_form
from steersman.registry.columns import label_selector_text, labels_text
from steersman.registry.pod_template.columns import container_columns, without_annotation
from steersman.registry.pod_template.defaults import set_pod_template_defaults
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.pods import validate_pod_template_spec
from steersman.registry.pod_template.validation.workloads import parse_selector, validate_always_running
from steersman.registry.pod_template.workload import WorkloadStrategy, template_warnings
from steersman.registry.validation.counts import (
    int_or_percent_value,
    validate_at_most_all,
    validate_collision_count,
    validate_counters,
    validate_int_or_percent,
)
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""The annotation that counts templates, the remainder of a field of v1beta1."""


COUNTERS: Final = (
    ("current_number_scheduled", "currentNumberScheduled"),
    ("number_misscheduled", "numberMisscheduled"),
    ("desired_number_scheduled", "desiredNumberScheduled"),
    ("number_ready", "numberReady"),
    ("observed_generation", "observedGeneration"),
    ("updated_number_scheduled", "updatedNumberScheduled"),
    ("number_available", "numberAvailable"),
    ("number_unavailable", "numberUnavailable"),
    ("collision_count", "collisionCount"),
)


def set_defaults(daemon_set: DaemonSet) -> None:
    """Set the defaults: a rolling update of one pod at a time, and ten old revisions."""
    strategy = daemon_set.spec.update_strategy
    strategy.type = strategy.type or "RollingUpdate"
    if strategy.type == "RollingUpdate":
        rolling = strategy.rolling_update = strategy.rolling_update or RollingUpdateDaemonSet()
        if rolling.max_unavailable is None:
            rolling.max_unavailable = 1
        if rolling.max_surge is None:
            rolling.max_surge = 0
    if daemon_set.spec.revision_history_limit is None:
        daemon_set.spec.revision_history_limit = 10
    set_pod_template_defaults(daemon_set.spec.template)


def template_generation(daemon_set: DaemonSet) -> int:
    """Return the template generation in the annotation, 0 if there is none or if it is no number."""
    try:
        return parse_int(daemon_set.metadata.annotations.get(TEMPLATE_GENERATION, "0"))
    except ValueError:
        return 0


def internal_error(daemon_set: DaemonSet) -> str:
    """Parse and normalize the number in the annotation; return an error text if it is no number."""
    annotations = daemon_set.metadata.annotations
    try:
        if TEMPLATE_GENERATION in annotations:
            annotations[TEMPLATE_GENERATION] = str(parse_int(annotations[TEMPLATE_GENERATION]))
    except ValueError as error:
        return str(error)
    return ""


def _validate_rolling_update(rolling: RollingUpdateDaemonSet, path: Path) -> Iterator[FieldError]:
    unavailable, surge = rolling.max_unavailable, rolling.max_surge
    yield from validate_int_or_percent(unavailable, path / "maxUnavailable")
    yield from validate_int_or_percent(surge, path / "maxSurge")
    yield from validate_at_most_all(unavailable, path / "maxUnavailable")
    yield from validate_at_most_all(surge, path / "maxSurge")
    has_unavailable, has_surge = int_or_percent_value(unavailable) != 0, int_or_percent_value(surge) != 0
    if has_unavailable and has_surge:
        yield invalid(path / "maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not has_unavailable and not has_surge:
        yield required(path / "maxUnavailable", "cannot be 0 when maxSurge is 0")


def _validate_update_strategy(strategy: DaemonSetUpdateStrategy, path: Path) -> Iterator[FieldError]:
    if strategy.type == "RollingUpdate":
        if strategy.rolling_update is None:
            yield required(path / "rollingUpdate")
        else:
            yield from _validate_rolling_update(strategy.rolling_update, path / "rollingUpdate")
    elif strategy.type != "OnDelete":
        yield not_supported(path, strategy_message_form(strategy), ("RollingUpdate", "OnDelete"))


def _validate(
    daemon_set: DaemonSet, options: PodValidationOptions, selector_options: LabelSelectorOptions = STRICT
) -> Iterator[FieldError]:
    spec, path = daemon_set.spec, Path("spec")
    yield from validate_label_selector(spec.selector, path / "selector", selector_options)
    selector = parse_selector(spec.selector)
    labels = spec.template.metadata.labels
    if selector is not None and not selector.matches(labels):
        detail = "`selector` does not match template `labels`"
        yield invalid(path.child("template", "metadata", "labels"), labels or None, detail)
    if spec.selector is not None and not spec.selector.match_labels and not spec.selector.match_expressions:
        yield invalid(path / "selector", spec.selector, "empty selector is invalid for daemonset")
    yield from validate_pod_template_spec(spec.template, path / "template", options)
    yield from validate_always_running(spec.template, path / "template", "DaemonSet")
    yield from validate_nonnegative(spec.min_ready_seconds, path / "minReadySeconds")
    yield from validate_nonnegative(template_generation(daemon_set), path / "templateGeneration")
    yield from _validate_update_strategy(spec.update_strategy, path / "updateStrategy")
    if spec.revision_history_limit is not None:
        yield from validate_nonnegative(spec.revision_history_limit, path / "revisionHistoryLimit")


class DaemonSetStrategy(WorkloadStrategy[DaemonSet]):
    immutable = ("spec/selector",)

    def prepare_for_create(self, ctx: Context, daemon_set: DaemonSet) -> None:
        super().prepare_for_create(ctx, daemon_set)
        daemon_set.metadata.annotations[TEMPLATE_GENERATION] = str(max(1, template_generation(daemon_set)))

    def validate(self, ctx: Context, daemon_set: DaemonSet) -> Iterator[FieldError]:
        return _validate(daemon_set, self.template_options(None))

    def warnings_on_create(self, ctx: Context, daemon_set: DaemonSet) -> Iterator[str]:
        yield from template_warnings(daemon_set.spec.template)

    def prepare_for_update(self, ctx: Context, new: DaemonSet, old: DaemonSet) -> None:
        super().prepare_for_update(ctx, new, old)
        generation = template_generation(old) + (new.spec.template != old.spec.template)
        new.metadata.annotations[TEMPLATE_GENERATION] = str(generation)

    def validate_update(self, ctx: Context, new: DaemonSet, old: DaemonSet) -> Iterator[FieldError]:
        yield from super().validate_update(ctx, new, old)
        tolerant = label_selector_has_invalid_label_value(old.spec.selector)
        selector_options = LabelSelectorOptions(allow_invalid_label_value=tolerant)
        yield from _validate(new, self.template_options(old.spec.template), selector_options)

    def warnings_on_update(self, ctx: Context, new: DaemonSet, old: DaemonSet) -> Iterator[str]:
        if new.spec.template != old.spec.template:
            yield from template_warnings(new.spec.template)


class DaemonSetStatusStrategy(StatusStrategy[DaemonSet]):
    def prepare_for_update(self, ctx: Context, new: DaemonSet, old: DaemonSet) -> None:
        new.spec = old.spec
        new.metadata.annotations[TEMPLATE_GENERATION] = str(template_generation(old))

    def validate_update(self, ctx: Context, new: DaemonSet, old: DaemonSet) -> Iterator[FieldError]:
        yield from validate_counters(new.status, COUNTERS, Path("status"))
        yield from validate_collision_count(new.status, old.status, Path("status"))


DAEMON_SETS = Resource(
    kind=built_in(DaemonSet, default=set_defaults, internal_error=internal_error),
    plural="daemonsets",
    short_names=("ds",),
    categories=("all",),
    strategy=DaemonSetStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Desired", lambda d: d.status.desired_number_scheduled, type="integer"),
        Column("Current", lambda d: d.status.current_number_scheduled, type="integer"),
        Column("Ready", lambda d: d.status.number_ready, type="integer"),
        Column("Up-to-date", lambda d: d.status.updated_number_scheduled, type="integer"),
        Column("Available", lambda d: d.status.number_available, type="integer"),
        Column("Node Selector", lambda d: labels_text(d.spec.template.spec.node_selector)),
        AGE,
        *container_columns(lambda d: d.spec.template),
        Column("Selector", lambda d: label_selector_text(d.spec.selector), priority=1),
    ),
    row_metadata=without_annotation(TEMPLATE_GENERATION),
    subresources=(Subresource(name="status", strategy=DaemonSetStatusStrategy()),),
    storage_version_hash="dd7pWHUlMKQ=",
)
