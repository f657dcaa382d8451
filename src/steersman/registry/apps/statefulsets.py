"""StatefulSets: pods with names and volumes of their own."""

from __future__ import annotations

from steersman.api.apps.v1 import (
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetStatus,
)
from steersman.machinery.validation.object_meta import name_is_dns_label
from steersman.registry.apps.columns import container_columns
from steersman.registry.core.pod_defaults import set_pod_template_defaults
from steersman.registry.core.pod_volume_defaults import set_claim_spec_defaults
from steersman.registry.scale import SCALE
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy


def set_defaults(stateful_set: StatefulSet) -> None:
    """One replica, a rolling update in order, volumes that outlive their pods, ten old revisions."""
    spec = stateful_set.spec
    spec.pod_management_policy = spec.pod_management_policy or "OrderedReady"
    strategy = spec.update_strategy
    if not strategy.type:
        strategy.type = "RollingUpdate"
        strategy.rolling_update = strategy.rolling_update or RollingUpdateStatefulSetStrategy()
    if strategy.type == "RollingUpdate" and strategy.rolling_update is not None:
        rolling = strategy.rolling_update
        if rolling.partition is None:
            rolling.partition = 0
    retention = spec.persistent_volume_claim_retention_policy
    if retention is None:
        retention = StatefulSetPersistentVolumeClaimRetentionPolicy()
        spec.persistent_volume_claim_retention_policy = retention
    retention.when_deleted = retention.when_deleted or "Retain"
    retention.when_scaled = retention.when_scaled or "Retain"
    if spec.replicas is None:
        spec.replicas = 1
    if spec.revision_history_limit is None:
        spec.revision_history_limit = 10
    set_pod_template_defaults(spec.template)
    for claim in spec.volume_claim_templates:
        claim.api_version, claim.kind = "v1", "PersistentVolumeClaim"
        claim.status.phase = claim.status.phase or "Pending"
        set_claim_spec_defaults(claim.spec)


def _drop_max_unavailable(stateful_set: StatefulSet) -> None:
    """The feature behind the field (MaxUnavailableStatefulSet) is off, so the field is not kept."""
    if (rolling := stateful_set.spec.update_strategy.rolling_update) is not None:
        rolling.max_unavailable = None


class StatefulSetStrategy(Strategy[StatefulSet]):
    def prepare_for_create(self, ctx: Context, stateful_set: StatefulSet) -> None:
        stateful_set.status = StatefulSetStatus()
        stateful_set.metadata.generation = 1
        _drop_max_unavailable(stateful_set)

    def prepare_for_update(self, ctx: Context, new: StatefulSet, old: StatefulSet) -> None:
        new.status = old.status
        old_rolling = old.spec.update_strategy.rolling_update
        if old_rolling is None or old_rolling.max_unavailable is None:
            _drop_max_unavailable(new)
        if new.spec != old.spec:
            new.metadata.generation = old.metadata.generation + 1


class StatefulSetStatusStrategy(StatusStrategy[StatefulSet]):
    pass


STATEFUL_SETS = Resource(
    kind=StatefulSet,
    group="apps",
    plural="statefulsets",
    short_names=("sts",),
    categories=("all",),
    strategy=StatefulSetStrategy(),
    name_validator=name_is_dns_label,
    default=set_defaults,
    columns=(
        Column(
            "Ready",
            lambda s: f"{s.status.ready_replicas}/{s.spec.replicas or 0}",
            description="Number of the pod with ready state",
        ),
        AGE,
        *container_columns(lambda s: s.spec.template),
    ),
    subresources=(Subresource(name="status", strategy=StatefulSetStatusStrategy()), SCALE),
    storage_version_hash="H+vl74LkKdo=",
)
