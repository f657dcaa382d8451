"""ReplicaSets: a number of pods from one template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.apps.v1 import ReplicaSet, ReplicaSetSpec
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.validation.leaves import validate_nonnegative
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.columns import label_selector_text
from steersman.registry.pod_template.columns import container_columns
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
from steersman.registry.validation.counts import validate_at_most_replicas, validate_available, validate_counters
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy

COUNTERS: Final = (
    ("replicas", "replicas"),
    ("fully_labeled_replicas", "fullyLabeledReplicas"),
    ("ready_replicas", "readyReplicas"),
    ("available_replicas", "availableReplicas"),
    ("observed_generation", "observedGeneration"),
    ("terminating_replicas", "terminatingReplicas"),
)
SOME_OF_REPLICAS: Final = (
    ("fully_labeled_replicas", "fullyLabeledReplicas"),
    ("ready_replicas", "readyReplicas"),
    ("available_replicas", "availableReplicas"),
)


def set_defaults(replica_set: ReplicaSet) -> None:
    """Set the defaults: one replica."""
    if replica_set.spec.replicas is None:
        replica_set.spec.replicas = 1
    set_pod_template_defaults(replica_set.spec.template)


def _validate_spec(spec: ReplicaSetSpec, options: PodValidationOptions) -> Iterator[FieldError]:
    path = Path("spec")
    yield from validate_nonnegative(spec.replicas or 0, path / "replicas")
    yield from validate_nonnegative(spec.min_ready_seconds, path / "minReadySeconds")
    # Upstream's message says "deployment" here, too.
    yield from validate_selector(spec.selector, path / "selector", "deployment")
    selector = parse_selector(spec.selector)
    if selector is None:
        yield invalid(path / "selector", spec.selector, "invalid label selector")
    else:
        yield from validate_replica_set_template(spec.template, selector, path / "template", options)


class ReplicaSetStrategy(WorkloadStrategy[ReplicaSet]):
    immutable = ("spec/selector",)

    def validate(self, ctx: Context, replica_set: ReplicaSet) -> Iterator[FieldError]:
        return _validate_spec(replica_set.spec, self.template_options(None))

    def validate_update(self, ctx: Context, new: ReplicaSet, old: ReplicaSet) -> Iterator[FieldError]:
        yield from _validate_spec(new.spec, self.template_options(old.spec.template))
        yield from super().validate_update(ctx, new, old)


class ReplicaSetStatusStrategy(StatusStrategy[ReplicaSet]):
    def validate_update(self, ctx: Context, new: ReplicaSet, old: ReplicaSet) -> Iterator[FieldError]:
        path = Path("status")
        yield from validate_counters(new.status, COUNTERS, path)
        yield from validate_at_most_replicas(new.status, SOME_OF_REPLICAS, path)
        yield from validate_available(new.status, path)


REPLICA_SETS = Resource(
    kind=built_in(ReplicaSet, default=set_defaults),
    plural="replicasets",
    short_names=("rs",),
    categories=("all",),
    strategy=ReplicaSetStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("Desired", lambda r: r.spec.replicas or 0, type="integer"),
        Column("Current", lambda r: r.status.replicas, type="integer"),
        Column("Ready", lambda r: r.status.ready_replicas, type="integer"),
        AGE,
        *container_columns(lambda r: r.spec.template),
        Column("Selector", lambda r: label_selector_text(r.spec.selector), priority=1),
    ),
    subresources=(Subresource(name="status", strategy=ReplicaSetStatusStrategy()), SCALE),
    storage_version_hash="P1RzHs8/mWQ=",
)
