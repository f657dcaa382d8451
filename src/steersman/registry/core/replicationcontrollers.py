"""ReplicationControllers: a number of equal pods; the predecessor of ReplicaSets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import (
    PodTemplateSpec,
    ReplicationController,
    ReplicationControllerSpec,
)
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, required
from steersman.machinery.selectors.labels import selector_from_set
from steersman.machinery.validation.leaves import validate_nonnegative
from steersman.machinery.validation.object_meta import name_is_long_name
from steersman.registry.pod_template.columns import container_columns
from steersman.registry.pod_template.defaults import set_pod_template_defaults
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.pods import validate_pod_template_spec
from steersman.registry.pod_template.validation.workloads import validate_always_running, validate_selected
from steersman.registry.pod_template.workload import (
    WorkloadStrategy,
)
from steersman.registry.scale import SCALE, selector_text
from steersman.registry.validation.counts import validate_at_most_replicas, validate_available, validate_counters
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy

_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_COUNTERS: Final = (
    ("replicas", "replicas"),
    ("fully_labeled_replicas", "fullyLabeledReplicas"),
    ("ready_replicas", "readyReplicas"),
    ("available_replicas", "availableReplicas"),
    ("observed_generation", "observedGeneration"),
)
_SOME_OF_REPLICAS: Final = _COUNTERS[1:4]


def _validate_spec(spec: ReplicationControllerSpec, options: PodValidationOptions) -> Iterator[FieldError]:
    yield from validate_nonnegative(spec.min_ready_seconds, _SPEC / "minReadySeconds")
    if not spec.selector:
        yield required(_SPEC / "selector")
    if spec.replicas is None:
        yield required(_SPEC / "replicas")
    else:
        yield from validate_nonnegative(spec.replicas, _SPEC / "replicas")
    path = _SPEC / "template"
    if spec.template is None:
        yield required(path)
        return
    yield from validate_selected(selector_from_set(spec.selector), spec.template, path)
    yield from validate_pod_template_spec(spec.template, path, options)
    yield from validate_always_running(spec.template, path, "ReplicationController")


class ReplicationControllerStrategy(WorkloadStrategy[ReplicationController]):
    garbage_collection = "orphan"

    def validate(self, ctx: Context, obj: ReplicationController) -> Iterator[FieldError]:
        return _validate_spec(obj.spec, self.template_options(None))

    def validate_update(
        self, ctx: Context, new: ReplicationController, old: ReplicationController
    ) -> Iterator[FieldError]:
        return _validate_spec(new.spec, self.template_options(old.spec.template))


class ReplicationControllerStatusStrategy(StatusStrategy[ReplicationController]):
    garbage_collection = "orphan"

    def validate_update(
        self, ctx: Context, new: ReplicationController, old: ReplicationController
    ) -> Iterator[FieldError]:
        yield from validate_counters(new.status, _COUNTERS, _STATUS)
        yield from validate_at_most_replicas(new.status, _SOME_OF_REPLICAS, _STATUS)
        yield from validate_available(new.status, _STATUS)


def default_replication_controller(controller: ReplicationController) -> None:
    """Set the defaults of SetDefaults_ReplicationController: one replica, selector and labels of the template."""
    spec = controller.spec
    if spec.replicas is None:
        spec.replicas = 1
    if spec.template is None:
        return
    labels = spec.template.metadata.labels
    if not spec.selector:
        spec.selector = dict(labels)
    if not controller.metadata.labels:
        controller.metadata.labels = dict(labels)
    set_pod_template_defaults(spec.template)


def _template(controller: ReplicationController) -> PodTemplateSpec:
    return controller.spec.template or PodTemplateSpec()


REPLICATION_CONTROLLERS: Final = Resource(
    kind=built_in(ReplicationController, default=default_replication_controller),
    plural="replicationcontrollers",
    short_names=("rc",),
    categories=("all",),
    strategy=ReplicationControllerStrategy(),
    name_validator=name_is_long_name,
    columns=(
        Column("Desired", lambda c: c.spec.replicas or 0, type="integer"),
        Column("Current", lambda c: c.status.replicas, type="integer"),
        Column("Ready", lambda c: c.status.ready_replicas, type="integer"),
        AGE,
        *container_columns(_template),
        Column("Selector", lambda c: selector_text(c.spec.selector) or "<none>", priority=1),
    ),
    selectable_fields={"status.replicas": lambda c: str(c.status.replicas)},
    subresources=(SCALE, Subresource(name="status", strategy=ReplicationControllerStatusStrategy())),
    storage_prefix="controllers",
    storage_version_hash="Jond2If31h0=",
)
