"""ReplicaSets: a number of pods from one template."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.apps.v1 import ReplicaSet, ReplicaSetStatus
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.apps.columns import container_columns, label_selector_text
from steersman.registry.apps.warnings import name_warnings
from steersman.registry.core.pod_defaults import set_pod_template_defaults
from steersman.registry.scale import SCALE
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


def set_defaults(replica_set: ReplicaSet) -> None:
    """One replica."""
    if replica_set.spec.replicas is None:
        replica_set.spec.replicas = 1
    set_pod_template_defaults(replica_set.spec.template)


class ReplicaSetStrategy(Strategy[ReplicaSet]):
    def prepare_for_create(self, ctx: Context, replica_set: ReplicaSet) -> None:
        replica_set.status = ReplicaSetStatus()
        replica_set.metadata.generation = 1

    def warnings_on_create(self, ctx: Context, replica_set: ReplicaSet) -> Iterator[str]:
        yield from name_warnings(replica_set.metadata.name)

    def prepare_for_update(self, ctx: Context, new: ReplicaSet, old: ReplicaSet) -> None:
        new.status = old.status
        if new.spec != old.spec:
            new.metadata.generation = old.metadata.generation + 1


class ReplicaSetStatusStrategy(StatusStrategy[ReplicaSet]):
    pass


REPLICA_SETS = Resource(
    kind=ReplicaSet,
    group="apps",
    plural="replicasets",
    short_names=("rs",),
    categories=("all",),
    strategy=ReplicaSetStrategy(),
    name_validator=name_is_dns_subdomain,
    default=set_defaults,
    columns=(
        Column("Desired", lambda r: r.spec.replicas or 0, type="integer"),
        Column("Current", lambda r: r.status.replicas, type="integer"),
        Column("Ready", lambda r: r.status.ready_replicas, type="integer"),
        AGE,
        *container_columns(lambda r: r.spec.template),
        Column("Selector", lambda r: label_selector_text(r.spec.selector), priority=1),
    ),
    selectable_fields={"status.replicas": lambda r: str(r.status.replicas)},
    subresources=(Subresource(name="status", strategy=ReplicaSetStatusStrategy()), SCALE),
    storage_version_hash="P1RzHs8/mWQ=",
)
