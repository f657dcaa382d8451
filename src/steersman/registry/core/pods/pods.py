"""Pods: containers that run together on one node."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import (
    Binding,
    Pod,
    PodAttachOptions,
    PodExecOptions,
    PodLogOptions,
    PodPortForwardOptions,
    PodProxyOptions,
)
from steersman.api.policy.v1 import Eviction
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.core.pods.binding import bind_pod
from steersman.registry.core.pods.columns import POD_COLUMNS, row_conditions
from steersman.registry.core.pods.eviction import evict_pod
from steersman.registry.core.pods.strategy import (
    PodEphemeralContainersStrategy,
    PodResizeStrategy,
    PodStatusStrategy,
    PodStrategy,
)
from steersman.registry.pod_template.defaults import set_pod_defaults
from steersman.rest.resource import Resource, Subresource
from steersman.work.first_use import on_first_use

_KUBELET: Final = "steersman.registry.core.pods.kubelet"
"""The module of the subresources that connect to kubelets."""

PODS: Final = Resource(
    kind=built_in(Pod, default=set_pod_defaults),
    plural="pods",
    short_names=("po",),
    categories=("all",),
    strategy=PodStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=POD_COLUMNS,
    row_conditions=row_conditions,
    indexed_field="spec.nodeName",
    literal_fields=frozenset({"spec.nodeName", "spec.schedulerName", "status.nominatedNodeName"}),
    selectable_fields={
        "spec.nodeName": lambda p: p.spec.node_name,
        "spec.restartPolicy": lambda p: p.spec.restart_policy,
        "spec.schedulerName": lambda p: p.spec.scheduler_name,
        "spec.serviceAccountName": lambda p: p.spec.service_account_name,
        "spec.hostNetwork": lambda p: "true" if p.spec.host_network else "false",
        "status.phase": lambda p: p.status.phase,
        "status.podIP": lambda p: p.status.pod_ips[0].ip if p.status.pod_ips else "",
        "status.podIPs": lambda p: "",
        "status.nominatedNodeName": lambda p: p.status.nominated_node_name,
    },
    subresources=(
        Subresource(
            name="attach",
            verbs=("create", "get"),
            kind=built_in(PodAttachOptions),
            connect=on_first_use(_KUBELET, "pod_attach"),
            tables=False,
        ),
        Subresource(name="binding", verbs=("create",), kind=built_in(Binding), create=bind_pod),
        Subresource(name="ephemeralcontainers", strategy=PodEphemeralContainersStrategy(), tables=False),
        Subresource(
            name="eviction",
            verbs=("create",),
            kind=built_in(Eviction),
            create=evict_pod,
            also_accepts=("policy/v1beta1",),
        ),
        Subresource(
            name="exec",
            verbs=("create", "get"),
            kind=built_in(PodExecOptions),
            connect=on_first_use(_KUBELET, "pod_exec"),
            tables=False,
        ),
        Subresource(
            name="log",
            verbs=("get",),
            connect=on_first_use(_KUBELET, "pod_logs"),
            connect_methods=("GET",),
            options=built_in(PodLogOptions),
            tables=False,
        ),
        Subresource(
            name="portforward",
            verbs=("create", "get"),
            kind=built_in(PodPortForwardOptions),
            connect=on_first_use(_KUBELET, "pod_port_forward"),
            tables=False,
        ),
        Subresource(
            name="proxy",
            verbs=("create", "delete", "get", "patch", "update"),
            kind=built_in(PodProxyOptions),
            connect=on_first_use(_KUBELET, "proxy_to_pod"),
            connect_path=True,
            connect_methods=("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"),
            tables=False,
        ),
        Subresource(name="resize", strategy=PodResizeStrategy(), tables=False),
        Subresource(name="status", strategy=PodStatusStrategy()),
    ),
    storage_version_hash="xPOwRZ+Yhw8=",
    returns_deleted_object=True,
)
