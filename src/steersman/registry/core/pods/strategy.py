"""The strategies of pods (pkg/registry/core/pod/strategy.go)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Self

from msgspec.structs import replace

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import DeleteOptions, LabelSelector, LabelSelectorRequirement
from steersman.machinery.built_in.pod_resources import compute_qos_class
from steersman.machinery.built_in.pod_state import TERMINAL_PHASES
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.validation.formats import is_dns1123_label
from steersman.machinery.validation.ip import warnings_for_ip
from steersman.machinery.values.conditions import with_condition
from steersman.registry.core.pods.resize_validation import validate_pod_resize
from steersman.registry.core.pods.status_validation import validate_pod_status_update
from steersman.registry.core.pods.update_validation import validate_ephemeral_containers_update, validate_pod_update
from steersman.registry.pod_template.apparmor import sync_app_armor_annotations
from steersman.registry.pod_template.fields import drop_disabled_fields, drop_disabled_status_fields
from steersman.registry.pod_template.validation.leniency import pod_options
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.pods import validate_pod_create
from steersman.registry.pod_template.warnings import warnings_for_pod
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.strategy import Strategy, restore_fields

_ALL_BUT_SPEC = ("status", "metadata")


class PodStrategy(Strategy[core.Pod, Services]):
    """The strategy of pods without a subresource."""

    resets: tuple[str, ...] = ("status",)
    bumps_generation_on = ("spec",)
    allow_privileged: bool = True

    def bind(self, services: Services) -> Self:
        bound = copy.copy(self)
        bound.allow_privileged = services.allow_privileged
        return bound

    def prepare_for_create(self, ctx: Context, pod: core.Pod) -> None:
        # The QoS class of the client, if there is one, is kept.
        qos_class = pod.status.qos_class or compute_qos_class(pod.spec)
        super().prepare_for_create(ctx, pod)
        pod.status.phase, pod.status.qos_class = "Pending", qos_class
        pod.spec.service_account = pod.spec.service_account_name
        pod.spec.overhead = pod.spec.overhead or None
        drop_disabled_fields(pod.spec, None)
        if pod.spec.scheduling_gates:
            gated = core.PodCondition(
                type="PodScheduled",
                status="False",
                reason="SchedulingGated",
                message="Scheduling is blocked due to non-empty scheduling gates",
            )
            pod.status.conditions = with_condition((), gated)
        if pod.spec.affinity is not None or pod.spec.topology_spread_constraints:
            _merge_label_keys(pod)
        if pod.metadata.annotations:
            sync_app_armor_annotations(ctx, pod)

    def validate(self, ctx: Context, pod: core.Pod) -> Iterator[FieldError]:
        return validate_pod_create(pod, pod_options(None, is_pod=True, allow_privileged=self.allow_privileged))

    def warnings_on_create(self, ctx: Context, pod: core.Pod) -> Iterator[str]:
        if messages := is_dns1123_label(pod.metadata.name):
            yield (
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                f"a DNS label is recommended: [{' '.join(messages)}]"
            )
        yield from warnings_for_pod(pod)

    def prepare_for_update(self, ctx: Context, new: core.Pod, old: core.Pod) -> None:
        new.spec.service_account = new.spec.service_account_name
        new.spec.overhead = new.spec.overhead or None
        drop_disabled_fields(new.spec, old.spec)
        super().prepare_for_update(ctx, new, old)

    def validate_update(self, ctx: Context, new: core.Pod, old: core.Pod) -> Iterator[FieldError]:
        # A pod that is valid as a new one is valid as an update, too, whatever the old pod has.
        strict = pod_options(None, is_pod=True, allow_privileged=self.allow_privileged)
        if next(validate_pod_update(new, old, strict), None) is None:
            return iter(())
        return validate_pod_update(new, old, self._update_options(old))

    def _update_options(self, old: core.Pod) -> PodValidationOptions:
        return pod_options(old.spec, old.metadata.annotations, is_pod=True, allow_privileged=self.allow_privileged)

    def check_graceful_delete(self, ctx: Context, pod: core.Pod, options: DeleteOptions) -> bool:
        period = options.grace_period_seconds
        if period is None:
            period = pod.spec.termination_grace_period_seconds or 0
        if not pod.spec.node_name or pod.status.phase in TERMINAL_PHASES:
            period = 0
        options.grace_period_seconds = 1 if period < 0 else period
        return True


class PodStatusStrategy(PodStrategy):
    """The strategy of `/status`, which kubelets and schedulers write."""

    resets = ("spec", "metadata/deletionTimestamp", "metadata/ownerReferences")

    def prepare_for_update(self, ctx: Context, new: core.Pod, old: core.Pod) -> None:
        Strategy.prepare_for_update(self, ctx, new, old)
        if not new.status.qos_class:
            new.status.qos_class = old.status.qos_class
        _keep_observed_generations(new.status, old.status)
        drop_disabled_status_fields(new.status, old.status)

    def validate_update(self, ctx: Context, new: core.Pod, old: core.Pod) -> Iterator[FieldError]:
        return validate_pod_status_update(new, old, self._update_options(old))

    def warnings_on_update(self, ctx: Context, new: core.Pod, old: core.Pod) -> Iterator[str]:
        for index, pod_ip in enumerate(new.status.pod_ips):
            yield from warnings_for_ip(pod_ip.ip, Path("status", "podIPs")[index] / "ip")
        for index, host_ip in enumerate(new.status.host_ips):
            yield from warnings_for_ip(host_ip.ip, Path("status", "hostIPs")[index] / "ip")


class PodEphemeralContainersStrategy(PodStrategy):
    """The strategy of `/ephemeralcontainers`: only ephemeral containers may be added."""

    resets = ()

    def prepare_for_update(self, ctx: Context, new: core.Pod, old: core.Pod) -> None:
        new.spec = replace(old.spec, ephemeral_containers=new.spec.ephemeral_containers)
        restore_fields(new, old, _ALL_BUT_SPEC)
        drop_disabled_fields(new.spec, old.spec)
        Strategy.prepare_for_update(self, ctx, new, old)

    def validate_update(self, ctx: Context, new: core.Pod, old: core.Pod) -> Iterator[FieldError]:
        return validate_ephemeral_containers_update(new, old, self._update_options(old))


class PodResizeStrategy(PodStrategy):
    """The strategy of `/resize`: only the resources of running containers may change."""

    resets = ()

    def prepare_for_update(self, ctx: Context, new: core.Pod, old: core.Pod) -> None:
        _keep_unresizable_fields(new, old)
        drop_disabled_fields(new.spec, old.spec)
        Strategy.prepare_for_update(self, ctx, new, old)

    def validate_update(self, ctx: Context, new: core.Pod, old: core.Pod) -> Iterator[FieldError]:
        return validate_pod_resize(new, old, self._update_options(old))


def _keep_unresizable_fields(new: core.Pod, old: core.Pod) -> None:
    """Restore every field that a resize may not change.

    A pod with added or removed containers is left as it is, and validation refuses it.
    """
    containers, before = new.spec.containers or [], old.spec.containers or []
    if len(containers) != len(before) or len(new.spec.init_containers) != len(old.spec.init_containers):
        return
    new.spec = replace(
        old.spec,
        containers=_with_old_fields(containers, before),
        init_containers=_with_old_fields(new.spec.init_containers, old.spec.init_containers),
        resources=new.spec.resources,
    )
    restore_fields(new, old, _ALL_BUT_SPEC)


def _with_old_fields(containers: list[core.Container], before: list[core.Container]) -> list[core.Container]:
    if any(now.name != then.name for now, then in zip(containers, before, strict=True)):
        return containers
    return [
        replace(then, resources=now.resources, resize_policy=now.resize_policy)
        for now, then in zip(containers, before, strict=True)
    ]


def _keep_observed_generations(new: core.PodStatus, old: core.PodStatus) -> None:
    """Keep `observedGeneration`s that the client omits, as older clients do not know the field."""
    if new.observed_generation == 0:
        new.observed_generation = old.observed_generation
    before: dict[str, list[int]] = {}
    for condition in old.conditions:
        before.setdefault(condition.type, []).append(condition.observed_generation)
    for condition in new.conditions:
        generations = before.get(condition.type)
        kept = generations.pop(0) if generations else 0
        if condition.observed_generation == 0:
            condition.observed_generation = kept


def _merge_label_keys(pod: core.Pod) -> None:
    """Convert `matchLabelKeys` and `mismatchLabelKeys` to requirements with this pod's label values."""
    labels = pod.metadata.labels
    affinity = pod.spec.affinity
    if affinity is not None:
        for terms in (affinity.pod_affinity, affinity.pod_anti_affinity):
            if terms is None:
                continue
            for weighted in terms.preferred_during_scheduling_ignored_during_execution:
                _merge_term_keys(weighted.pod_affinity_term, labels)
            for term in terms.required_during_scheduling_ignored_during_execution:
                _merge_term_keys(term, labels)
    for constraint in pod.spec.topology_spread_constraints:
        if constraint.label_selector is not None:
            _require(constraint.label_selector, constraint.match_label_keys, "In", labels)


def _merge_term_keys(term: core.PodAffinityTerm, labels: dict[str, str]) -> None:
    if term.label_selector is not None:
        _require(term.label_selector, term.match_label_keys, "In", labels)
        _require(term.label_selector, term.mismatch_label_keys, "NotIn", labels)


def _require(selector: LabelSelector, keys: list[str], operator: str, labels: dict[str, str]) -> None:
    selector.match_expressions += [
        LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]]) for key in keys if key in labels
    ]
