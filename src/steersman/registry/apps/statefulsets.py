"""StatefulSets: pods with stable names and volumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from steersman.api.apps.v1 import (
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from steersman.api.core.v1 import PersistentVolumeClaimVolumeSource, PodTemplateSpec, Volume
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.field import FieldError, Path, Verbatim, forbidden, invalid, required
from steersman.machinery.validation.formats import is_dns1123_label
from steersman.machinery.validation.leaves import validate_nonnegative, validate_supported, validate_with
from steersman.machinery.validation.object_meta import name_is_dns_label, validate_annotations
from steersman.machinery.validation.selectors import validate_labels
from steersman.registry.apps.update_strategy import strategy_message_form
from steersman.registry.pod_template.columns import READY, container_columns
from steersman.registry.pod_template.defaults import set_pod_template_defaults
from steersman.registry.pod_template.validation.claims import validate_claim_spec
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.pods import validate_pod_template_spec
from steersman.registry.pod_template.validation.workloads import (
    parse_selector,
    validate_always_running,
    validate_selected,
    validate_selector,
)
from steersman.registry.pod_template.volume_defaults import set_claim_spec_defaults
from steersman.registry.pod_template.warnings import claim_spec_warnings
from steersman.registry.pod_template.workload import WorkloadStrategy, template_warnings
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
from steersman.rest.resource import AGE, Resource, Subresource
from steersman.rest.strategy import StatusStrategy

RETENTION_POLICIES: Final = ("Retain", "Delete")
ONLY_SOME_FIELDS: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
COUNTERS: Final = (
    ("replicas", "replicas"),
    ("ready_replicas", "readyReplicas"),
    ("current_replicas", "currentReplicas"),
    ("updated_replicas", "updatedReplicas"),
    ("available_replicas", "availableReplicas"),
    ("observed_generation", "observedGeneration"),
    ("collision_count", "collisionCount"),
)
SOME_OF_REPLICAS: Final = (
    ("ready_replicas", "readyReplicas"),
    ("current_replicas", "currentReplicas"),
    ("updated_replicas", "updatedReplicas"),
    ("available_replicas", "availableReplicas"),
)
_ANY_TEMPLATE: Final = PodTemplateSpec()
_ANY_STRATEGY: Final = StatefulSetUpdateStrategy()


def set_defaults(stateful_set: StatefulSet) -> None:
    """Set the defaults.

    They are one replica, an ordered rolling update, volumes that outlive their pods, and ten old revisions.
    """
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


def _warnings(spec: StatefulSetSpec) -> Iterator[str]:
    if spec.revision_history_limit is not None and spec.revision_history_limit < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )


def _drop_max_unavailable(stateful_set: StatefulSet) -> None:
    """Drop `maxUnavailable`, as its feature (MaxUnavailableStatefulSet) is off."""
    if (rolling := stateful_set.spec.update_strategy.rolling_update) is not None:
        rolling.max_unavailable = None


def _validate_update_strategy(strategy: StatefulSetUpdateStrategy, path: Path) -> Iterator[FieldError]:
    rolling = strategy.rolling_update
    if not strategy.type:
        yield required(path)
    elif strategy.type == "OnDelete":
        if rolling is not None:
            shown = {"Partition": rolling.partition or 0, "MaxUnavailable": rolling.max_unavailable}
            yield invalid(
                path / "rollingUpdate",
                Verbatim(encode_in_order(shown).decode()),
                "only allowed for updateStrategy 'RollingUpdate'",
            )
    elif strategy.type == "RollingUpdate":
        if rolling is not None:
            yield from _validate_rolling_update(rolling, path / "rollingUpdate")
    else:
        yield invalid(path, strategy_message_form(strategy), "must be 'RollingUpdate' or 'OnDelete'")


def _validate_rolling_update(rolling: RollingUpdateStatefulSetStrategy, path: Path) -> Iterator[FieldError]:
    yield from validate_nonnegative(rolling.partition or 0, path / "partition")
    unavailable = rolling.max_unavailable
    if unavailable is not None:
        yield from validate_int_or_percent(unavailable, path / "maxUnavailable")
        if int_or_percent_value(unavailable) == 0:
            yield invalid(path / "maxUnavailable", unavailable, "cannot be 0")
        yield from validate_at_most_all(unavailable, path / "maxUnavailable")


def _validate_retention(spec: StatefulSetSpec, path: Path) -> Iterator[FieldError]:
    policy = spec.persistent_volume_claim_retention_policy
    if policy is not None:
        for value, name in ((policy.when_deleted, "whenDeleted"), (policy.when_scaled, "whenScaled")):
            yield from validate_supported(value, RETENTION_POLICIES, path / name)


def _checked_template(spec: StatefulSetSpec) -> PodTemplateSpec:
    """Return the template to validate: with the volumes of claim templates, and without the hostname, which is
    generated.
    """
    pod = spec.template.spec
    if not (pod.subdomain or pod.hostname or spec.volume_claim_templates):
        return spec.template
    claims = {claim.metadata.name: None for claim in spec.volume_claim_templates}
    volumes = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name)) for name in claims
    ]
    volumes += [volume for volume in pod.volumes if volume.name not in claims]
    return replace(spec.template, spec=replace(pod, subdomain="", hostname="", volumes=volumes))


def _validate_template(
    spec: StatefulSetSpec, path: Path, options: PodValidationOptions, *, check_pod: bool
) -> Iterator[FieldError]:
    selector = parse_selector(spec.selector)
    if selector is None:
        yield invalid(Path("spec", "selector"), spec.selector, "")
        return
    template = _checked_template(spec)
    yield from validate_selected(selector, template, path)
    if check_pod:
        yield from validate_pod_template_spec(template, path, options)
    yield from validate_labels(template.metadata.labels, path / "labels")
    yield from validate_annotations(template.metadata.annotations, path / "annotations")


def _validate_spec(
    spec: StatefulSetSpec, options: PodValidationOptions, *, new: bool, check_pod: bool = True
) -> Iterator[FieldError]:
    """Validate a spec.

    `new` is False on updates, which may keep an invalid service name or claim template, as neither can change.
    """
    path = Path("spec")
    if not spec.pod_management_policy:
        yield required(path / "podManagementPolicy")
    elif spec.pod_management_policy not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        yield invalid(path / "podManagementPolicy", spec.pod_management_policy, detail)
    yield from _validate_update_strategy(spec.update_strategy, path / "updateStrategy")
    yield from _validate_retention(spec, path / "persistentVolumeClaimRetentionPolicy")
    if new:
        for index, claim in enumerate(spec.volume_claim_templates):
            yield from validate_claim_spec(claim.spec, (path / "volumeClaimTemplates")[index] / "spec")
    yield from validate_nonnegative(spec.replicas or 0, path / "replicas")
    yield from validate_nonnegative(spec.min_ready_seconds, path / "minReadySeconds")
    if spec.ordinals is not None:
        yield from validate_nonnegative(spec.ordinals.start, path.child("ordinals", "start"))
    if new and spec.service_name:
        yield from validate_with(is_dns1123_label, spec.service_name, path / "serviceName")
    yield from validate_selector(spec.selector, path / "selector", "statefulset")
    yield from _validate_template(spec, path / "template", options, check_pod=check_pod)
    yield from validate_always_running(spec.template, path / "template", "StatefulSet")


def _fixed(spec: StatefulSetSpec) -> StatefulSetSpec:
    """Return the spec with all mutable fields cleared."""
    return replace(
        spec,
        replicas=0,
        template=_ANY_TEMPLATE,
        update_strategy=_ANY_STRATEGY,
        min_ready_seconds=0,
        ordinals=None,
        revision_history_limit=None,
        persistent_volume_claim_retention_policy=None,
    )


def _claim_warnings(spec: StatefulSetSpec, *member: str) -> Iterator[str]:
    """Yield warnings about claim templates.

    `member` is the path of the spec: upstream omits it on create, and writes "Spec" on update.
    """
    for index, claim in enumerate(spec.volume_claim_templates):
        yield from claim_spec_warnings(claim.spec, Path("spec", "volumeClaimTemplates")[index].child(*member))


class StatefulSetStrategy(WorkloadStrategy[StatefulSet]):
    def prepare_for_create(self, ctx: Context, stateful_set: StatefulSet) -> None:
        super().prepare_for_create(ctx, stateful_set)
        _drop_max_unavailable(stateful_set)

    def validate(self, ctx: Context, stateful_set: StatefulSet) -> Iterator[FieldError]:
        return _validate_spec(stateful_set.spec, self.template_options(None), new=True)

    def warnings_on_create(self, ctx: Context, stateful_set: StatefulSet) -> Iterator[str]:
        yield from template_warnings(stateful_set.spec.template)
        yield from _warnings(stateful_set.spec)
        yield from _claim_warnings(stateful_set.spec)

    def prepare_for_update(self, ctx: Context, new: StatefulSet, old: StatefulSet) -> None:
        old_rolling = old.spec.update_strategy.rolling_update
        if old_rolling is None or old_rolling.max_unavailable is None:
            _drop_max_unavailable(new)
        super().prepare_for_update(ctx, new, old)

    def validate_update(self, ctx: Context, new: StatefulSet, old: StatefulSet) -> Iterator[FieldError]:
        options = self.template_options(old.spec.template)
        was_valid = next(_validate_spec(old.spec, options, new=False), None) is None
        yield from _validate_spec(new.spec, options, new=False, check_pod=was_valid)
        if _fixed(new.spec) != _fixed(old.spec):
            yield forbidden(Path("spec"), ONLY_SOME_FIELDS)

    def warnings_on_update(self, ctx: Context, new: StatefulSet, old: StatefulSet) -> Iterator[str]:
        if new.metadata.generation != old.metadata.generation:
            yield from template_warnings(new.spec.template)
        yield from _warnings(new.spec)
        yield from _claim_warnings(new.spec, "Spec")


class StatefulSetStatusStrategy(StatusStrategy[StatefulSet]):
    def validate_update(self, ctx: Context, new: StatefulSet, old: StatefulSet) -> Iterator[FieldError]:
        path = Path("status")
        yield from validate_counters(new.status, COUNTERS, path)
        yield from validate_at_most_replicas(new.status, SOME_OF_REPLICAS, path)
        yield from validate_available(new.status, path, "status.readyReplicas")
        yield from validate_collision_count(new.status, old.status, path)


STATEFUL_SETS = Resource(
    kind=built_in(StatefulSet, default=set_defaults),
    plural="statefulsets",
    short_names=("sts",),
    categories=("all",),
    strategy=StatefulSetStrategy(),
    name_validator=name_is_dns_label,
    columns=(
        READY,
        AGE,
        *container_columns(lambda s: s.spec.template),
    ),
    subresources=(Subresource(name="status", strategy=StatefulSetStatusStrategy()), SCALE),
    storage_version_hash="H+vl74LkKdo=",
)
