"""Deployments: a number of equal pods, replaced step by step when their template changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.apps import v1
from steersman.api.apps.v1 import Deployment, RollingUpdateDeployment
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.errors.go_numbers import parse_int
from steersman.machinery.selectors.labels import SelectorError, from_label_selector
from steersman.machinery.validation.leaves import NOT_NEGATIVE, validate_nonnegative
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.apps.update_strategy import strategy_message_form
from steersman.registry.pod_template.columns import READY, container_columns, without_annotation
from steersman.registry.pod_template.defaults import set_pod_template_defaults
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.workloads import (
    parse_selector,
    validate_replica_set_template,
    validate_selector,
)
from steersman.registry.pod_template.workload import (
    WorkloadStrategy,
)
from steersman.registry.scale import SCALE
from steersman.registry.validation.counts import (
    int_or_percent_value,
    validate_at_most_all,
    validate_at_most_replicas,
    validate_available,
    validate_collision_count,
    validate_counters,
    validate_int_or_percent,
)
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy

ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"
"""The annotation that requests a rollback, the remainder of a field of v1beta1."""

COUNTERS: Final = (
    ("observed_generation", "observedGeneration"),
    ("replicas", "replicas"),
    ("updated_replicas", "updatedReplicas"),
    ("ready_replicas", "readyReplicas"),
    ("available_replicas", "availableReplicas"),
    ("unavailable_replicas", "unavailableReplicas"),
    ("terminating_replicas", "terminatingReplicas"),
    ("collision_count", "collisionCount"),
)
SOME_OF_REPLICAS: Final = (
    ("updated_replicas", "updatedReplicas"),
    ("ready_replicas", "readyReplicas"),
    ("available_replicas", "availableReplicas"),
)


def set_defaults(deployment: Deployment) -> None:
    """Set the defaults.

    They are one replica, a rolling update by 25%, ten old ReplicaSets, and ten minutes to make progress.
    """
    spec = deployment.spec
    if spec.replicas is None:
        spec.replicas = 1
    strategy = spec.strategy
    strategy.type = strategy.type or "RollingUpdate"
    if strategy.type == "RollingUpdate":
        rolling = strategy.rolling_update = strategy.rolling_update or RollingUpdateDeployment()
        if rolling.max_unavailable is None:
            rolling.max_unavailable = "25%"
        if rolling.max_surge is None:
            rolling.max_surge = "25%"
    if spec.revision_history_limit is None:
        spec.revision_history_limit = 10
    if spec.progress_deadline_seconds is None:
        spec.progress_deadline_seconds = 600
    set_pod_template_defaults(spec.template)


def _validate_rolling_update(rolling: RollingUpdateDeployment, path: Path) -> Iterator[FieldError]:
    unavailable, surge = rolling.max_unavailable, rolling.max_surge
    yield from validate_int_or_percent(unavailable, path / "maxUnavailable")
    yield from validate_int_or_percent(surge, path / "maxSurge")
    if int_or_percent_value(unavailable) == 0 and int_or_percent_value(surge) == 0:
        yield invalid(path / "maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from validate_at_most_all(unavailable, path / "maxUnavailable")


def _validate_strategy(strategy: v1.DeploymentStrategy, path: Path) -> Iterator[FieldError]:
    rolling = strategy.rolling_update
    if strategy.type == "Recreate":
        if rolling is not None:
            yield forbidden(path / "rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif strategy.type == "RollingUpdate":
        if rolling is None:
            yield required(path / "rollingUpdate", "this should be defaulted and never be nil")
        else:
            yield from _validate_rolling_update(rolling, path / "rollingUpdate")
    else:
        yield not_supported(path, strategy_message_form(strategy), ("Recreate", "RollingUpdate"))


def internal_error(deployment: Deployment) -> str:
    """Parse and normalize the number in the annotation; return an error text if it is no number."""
    annotations = deployment.metadata.annotations
    text = annotations.get(ROLLBACK_TO)
    try:
        if text is not None:
            annotations[ROLLBACK_TO] = str(parse_int(text))
    except ValueError as error:
        return f"failed to parse annotation[{ROLLBACK_TO}]={text} as int64: {error}"
    return ""


def _validate_rollback(deployment: Deployment) -> Iterator[FieldError]:
    text = deployment.metadata.annotations.get(ROLLBACK_TO, "0")
    if text.startswith("-"):
        yield invalid(Path("spec", "rollback", "version"), parse_int(text), NOT_NEGATIVE)


def _validate_spec(deployment: Deployment, options: PodValidationOptions) -> Iterator[FieldError]:
    spec, path = deployment.spec, Path("spec")
    yield from validate_nonnegative(spec.replicas or 0, path / "replicas")
    yield from validate_selector(spec.selector, path / "selector", "deployment")
    selector = parse_selector(spec.selector)
    if selector is None:
        yield invalid(path / "selector", spec.selector, "invalid label selector")
    else:
        yield from validate_replica_set_template(spec.template, selector, path / "template", options)
    yield from _validate_strategy(spec.strategy, path / "strategy")
    yield from validate_nonnegative(spec.min_ready_seconds, path / "minReadySeconds")
    if spec.revision_history_limit is not None:
        yield from validate_nonnegative(spec.revision_history_limit, path / "revisionHistoryLimit")
    yield from _validate_rollback(deployment)
    deadline = spec.progress_deadline_seconds
    if deadline is not None:
        yield from validate_nonnegative(deadline, path / "progressDeadlineSeconds")
        if deadline <= spec.min_ready_seconds:
            yield invalid(path / "progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


class DeploymentStrategy(WorkloadStrategy[Deployment]):
    immutable = ("spec/selector",)
    # Annotations are copied to the ReplicaSets.
    bumps_generation_on = ("spec", "metadata/annotations")

    def validate(self, ctx: Context, deployment: Deployment) -> Iterator[FieldError]:
        return _validate_spec(deployment, self.template_options(None))

    def validate_update(self, ctx: Context, new: Deployment, old: Deployment) -> Iterator[FieldError]:
        yield from _validate_spec(new, self.template_options(old.spec.template))
        yield from super().validate_update(ctx, new, old)


class DeploymentStatusStrategy(StatusStrategy[Deployment]):
    resets = ("spec", "metadata/labels")

    def validate_update(self, ctx: Context, new: Deployment, old: Deployment) -> Iterator[FieldError]:
        status, path = new.status, Path("status")
        yield from validate_counters(status, COUNTERS, path)
        yield from validate_at_most_replicas(status, SOME_OF_REPLICAS, path)
        yield from validate_available(status, path)
        yield from validate_collision_count(status, old.status, path)


def selector(deployment: Deployment) -> str:
    """Return the selector as text; unlike in other workloads an empty selector is shown as ""."""
    try:
        return str(from_label_selector(deployment.spec.selector))
    except SelectorError:
        return "<invalid>"


DEPLOYMENTS = Resource(
    kind=built_in(Deployment, default=set_defaults, internal_error=internal_error),
    plural="deployments",
    short_names=("deploy",),
    categories=("all",),
    strategy=DeploymentStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        READY,
        Column("Up-to-date", lambda d: d.status.updated_replicas),
        Column("Available", lambda d: d.status.available_replicas),
        AGE,
        *container_columns(lambda d: d.spec.template),
        Column("Selector", selector, priority=1),
    ),
    row_metadata=without_annotation(ROLLBACK_TO),
    subresources=(Subresource(name="status", strategy=DeploymentStatusStrategy()), SCALE),
    storage_version_hash="8aSe+NMegvE=",
)
