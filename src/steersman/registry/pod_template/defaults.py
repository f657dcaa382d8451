"""Defaults of pods and pod templates (pkg/apis/core/v1 defaults and conversion)."""

from __future__ import annotations

from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import (
    AnyContainer,
    aggregate_limits,
    aggregate_requests,
    all_containers,
    is_pod_level_resource,
    round_up_to_milli,
)
from steersman.machinery.validation.resource_names import is_huge_page_resource, is_overcommit_allowed
from steersman.registry.pod_template.image import pull_policy_for
from steersman.registry.pod_template.volume_defaults import set_volume_defaults
from steersman.work.threads import paced

DEFAULT_GRACE_PERIOD: Final = 30
"""Seconds."""

DEFAULT_SCHEDULER: Final = "default-scheduler"

_LEGACY_INIT_ANNOTATIONS: Final = (
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
)


def set_pod_defaults(pod: core.Pod) -> None:
    """Set all defaults of a v1 Pod: those of pods, those of every pod spec, and the aliases."""
    spec = pod.spec
    for container in (*(spec.containers or ()), *spec.init_containers):
        if (resources := container.resources).limits:
            resources.requests = {**resources.limits, **resources.requests}
    if spec.resources is not None:
        _default_pod_level_resources(spec, spec.resources)
    if spec.enable_service_links is None:
        spec.enable_service_links = True
    if spec.host_network:
        for container in (*(spec.containers or ()), *spec.init_containers):
            for port in container.ports:
                if port.host_port == 0:
                    port.host_port = port.container_port
    set_pod_spec_defaults(spec)
    if spec.termination_grace_period_seconds is not None and spec.termination_grace_period_seconds < 0:
        spec.termination_grace_period_seconds = 1
    drop_init_container_annotations(pod.metadata.annotations)
    set_pod_status_defaults(pod.status)


def set_pod_template_defaults(template: core.PodTemplateSpec) -> None:
    """Set the defaults of a template, which are fewer than a pod's; the pod made from the template gets the rest."""
    template.spec.overhead = template.spec.overhead or None
    set_pod_spec_defaults(template.spec)
    drop_init_container_annotations(template.metadata.annotations)


def set_pod_spec_defaults(spec: core.PodSpec) -> None:
    """Set the defaults of a pod spec, in pods and templates, and keep `serviceAccount` equal to `serviceAccountName`."""
    if not spec.dns_policy:
        spec.dns_policy = "ClusterFirst"
    if not spec.restart_policy:
        spec.restart_policy = "Always"
    if spec.security_context is None:
        spec.security_context = core.PodSecurityContext()
    if spec.termination_grace_period_seconds is None:
        spec.termination_grace_period_seconds = DEFAULT_GRACE_PERIOD
    if not spec.scheduler_name:
        spec.scheduler_name = DEFAULT_SCHEDULER
    if not spec.service_account_name:
        spec.service_account_name = spec.service_account
    spec.service_account = spec.service_account_name
    for volume in spec.volumes:
        set_volume_defaults(volume)
    for container in paced(all_containers(spec)):
        set_container_defaults(container)
    if spec.overhead:
        round_up_to_milli(spec.overhead)
    if spec.resources is not None:
        round_up_to_milli(spec.resources.limits)
        round_up_to_milli(spec.resources.requests)


def set_pod_status_defaults(status: core.PodStatus) -> None:
    """Make `podIP` and `podIPs` agree (`podIP` wins) and round quantities."""
    if status.pod_ip:
        if not status.pod_ips or status.pod_ips[0].ip != status.pod_ip:
            status.pod_ips = [core.PodIP(ip=status.pod_ip)]
    elif status.pod_ips:
        status.pod_ip = status.pod_ips[0].ip
    for statuses in (status.init_container_statuses, status.container_statuses, status.ephemeral_container_statuses):
        for container in statuses:
            round_up_to_milli(container.allocated_resources)
            if container.resources is not None:
                round_up_to_milli(container.resources.limits)
                round_up_to_milli(container.resources.requests)
    if status.allocated_resources:
        round_up_to_milli(status.allocated_resources)
    if status.resources is not None:
        round_up_to_milli(status.resources.limits)
        round_up_to_milli(status.resources.requests)


def drop_init_container_annotations(annotations: dict[str, str]) -> None:
    """Remove the annotations that kubelets before 1.8 read instead of `initContainers`."""
    if annotations:
        for key in _LEGACY_INIT_ANNOTATIONS:
            annotations.pop(key, None)


def set_container_defaults(container: AnyContainer) -> None:
    """Set the defaults of a container of any type."""
    if not container.image_pull_policy:
        container.image_pull_policy = pull_policy_for(container.image)
    if not container.termination_message_path:
        container.termination_message_path = "/dev/termination-log"
    if not container.termination_message_policy:
        container.termination_message_policy = "File"
    for port in container.ports:
        if not port.protocol:
            port.protocol = "TCP"
    for variable in container.env:
        if (source := variable.value_from) is None:
            continue
        if source.field_ref is not None and not source.field_ref.api_version:
            source.field_ref.api_version = "v1"
        if source.file_key_ref is not None and source.file_key_ref.optional is None:
            source.file_key_ref.optional = False
    if (resources := container.resources).limits or resources.requests:
        round_up_to_milli(resources.limits)
        round_up_to_milli(resources.requests)
    for probe in (container.liveness_probe, container.readiness_probe, container.startup_probe):
        if probe is not None:
            _set_probe_defaults(probe)
    if (lifecycle := container.lifecycle) is not None:
        for handler in (lifecycle.post_start, lifecycle.pre_stop):
            if handler is not None and handler.http_get is not None:
                _set_http_get_defaults(handler.http_get)


def _set_probe_defaults(probe: core.Probe) -> None:
    probe.timeout_seconds = probe.timeout_seconds or 1
    probe.period_seconds = probe.period_seconds or 10
    probe.success_threshold = probe.success_threshold or 1
    probe.failure_threshold = probe.failure_threshold or 3
    if probe.http_get is not None:
        _set_http_get_defaults(probe.http_get)
    if probe.grpc is not None and probe.grpc.service is None:
        probe.grpc.service = ""


def _set_http_get_defaults(action: core.HTTPGetAction) -> None:
    action.path = action.path or "/"
    action.scheme = action.scheme or "HTTP"


def _default_pod_level_resources(spec: core.PodSpec, resources: core.ResourceRequirements) -> None:
    """Derive pod-level resources from the containers' (KEP-2837).

    Huge page limits default to the containers' limits. Requests default to the containers' requests, then to the
    pod-level limits.
    """
    if resources.limits or resources.requests:
        for name, total in aggregate_limits(spec).items():
            if is_huge_page_resource(name) and name not in resources.requests:
                resources.limits.setdefault(name, total)
    if not resources.limits:
        return
    requests = dict(resources.requests)
    for name, total in aggregate_requests(spec).items():
        if is_pod_level_resource(name) and is_overcommit_allowed(name):
            requests.setdefault(name, total)
    for name, limit in resources.limits.items():
        if is_pod_level_resource(name):
            requests.setdefault(name, limit)
    resources.requests = requests
