"""Create, update and deletion of pods: fields set by the server, and permitted changes."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import Pod, PodCondition, PodStatus
from steersman.api.meta.v1 import DeleteOptions
from steersman.machinery.codec.serializer import deep_copy, from_plain, to_plain
from steersman.registry.core.pods.strategy import (
    PodEphemeralContainersStrategy,
    PodResizeStrategy,
    PodStatusStrategy,
    PodStrategy,
)
from steersman.rest.context import Context
from steersman.rest.strategy import Strategy
from tests.registry.podspecs import changed, created_pod, defaulted_pod, messages

CTX = Context()


def updated(strategy: Strategy[Pod], new: Pod, old: Pod) -> tuple[Pod, list[str]]:
    """Return the pod as the strategy would store it, and its errors."""
    strategy.prepare_for_update(CTX, new, old)
    return new, messages(strategy.validate_update(CTX, new, old))


def with_images(pod: Pod, image: str) -> Pod:
    copy = deep_copy(pod)
    for container in (*(copy.spec.containers or ()), *copy.spec.init_containers):
        container.image = image
    return copy


def test_a_new_pod_is_pending_with_generation_one() -> None:
    pod = defaulted_pod()
    pod.status = PodStatus(phase="Running", message="x")
    pod.metadata.generation = 7
    PodStrategy().prepare_for_create(CTX, pod)
    assert to_plain(pod.status) == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod.metadata.generation == 1


def test_a_gated_pod_says_so() -> None:
    (condition,) = created_pod(schedulingGates=[{"name": "a.b/c"}]).status.conditions
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "SchedulingGated")
    assert condition.message == "Scheduling is blocked due to non-empty scheduling gates"


@pytest.mark.parametrize(
    ("requests", "limits", "qos"),
    [
        ({}, {}, "BestEffort"),
        ({"cpu": "0"}, {}, "BestEffort"),
        ({"cpu": "1"}, {}, "Burstable"),
        ({}, {"cpu": "1"}, "Burstable"),
        ({}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1000m", "memory": "1024Mi"}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}, "Burstable"),
        ({}, {"example.com/gpu": "1"}, "BestEffort"),
    ],
)
def test_quality_of_service(requests: dict[str, str], limits: dict[str, str], qos: str) -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": requests, "limits": limits}}
    assert created_pod(containers=[container]).status.qos_class == qos


@pytest.mark.parametrize(
    ("first", "second", "qos"),
    [
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "100m", "memory": "1Mi"}, "Guaranteed"),
        ({"cpu": "1", "memory": "1Gi"}, {}, "Burstable"),
        ({}, {"cpu": "1", "memory": "1Gi"}, "Burstable"),
        ({"cpu": "1"}, {"memory": "1Gi"}, "Burstable"),
        ({"example.com/gpu": "1"}, {}, "BestEffort"),
    ],
)
def test_quality_of_service_of_several_containers(first: dict[str, str], second: dict[str, str], qos: str) -> None:
    containers = [
        {"name": name, "image": "x", "resources": {"limits": limits}} for name, limits in (("a", first), ("b", second))
    ]
    assert created_pod(containers=containers).status.qos_class == qos


def test_label_keys_become_requirements_with_the_pods_values() -> None:
    term = {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["a", "none"], "mismatchLabelKeys": ["b"]}
    pod = created_pod(
        metadata={"labels": {"a": "1", "b": "2"}},
        affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.pod_affinity is not None
    (made,) = pod.spec.affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    assert to_plain(made.label_selector) == {
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["1"]},
            {"key": "b", "operator": "NotIn", "values": ["2"]},
        ]
    }


def test_app_armor_annotations_become_fields_with_a_warning() -> None:
    ctx = Context()
    key = "container.apparmor.security.beta.kubernetes.io/c"
    pod = defaulted_pod(metadata={"annotations": {key: "localhost/p"}})
    PodStrategy().prepare_for_create(ctx, pod)
    (container,) = pod.spec.containers or []
    assert to_plain(container.security_context) == {"appArmorProfile": {"type": "Localhost", "localhostProfile": "p"}}
    assert ctx.warnings == [
        f'metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    ]


def test_fields_of_features_that_are_off_are_dropped() -> None:
    pod = created_pod(
        schedulingGroup={"podGroupName": "g"},
        containers=[{"name": "c", "image": "x", "lifecycle": {"stopSignal": "SIGTERM"}}],
        os={"name": "linux"},
        volumes=[{"name": "v", "projected": {"sources": [{"clusterTrustBundle": {"name": "x", "path": "p"}}]}}],
    )
    assert pod.spec.scheduling_group is None
    assert (pod.spec.containers or [])[0].lifecycle is None
    assert to_plain(pod.spec.volumes[0].projected)["sources"] == [{}]


def test_an_update_keeps_the_status_and_counts_changes_of_the_spec() -> None:
    old = created_pod()
    new = deep_copy(old)
    new.status = PodStatus(phase="Failed")
    new, errors = updated(PodStrategy(), new, old)
    assert (errors, new.status, new.metadata.generation) == ([], old.status, 1)
    new, errors = updated(PodStrategy(), with_images(old, "two"), old)
    assert (errors, new.metadata.generation) == ([], 2)


def test_images_deadline_and_tolerations_may_change() -> None:
    old = created_pod(initContainers=[{"name": "i", "image": "x"}], tolerations=[{"key": "x", "operator": "Exists"}])
    new = with_images(old, "two")
    new.spec.active_deadline_seconds = 50
    new.spec.tolerations = [*old.spec.tolerations, *defaulted_pod(tolerations=[{"key": "y"}]).spec.tolerations]
    new, errors = updated(PodStrategy(), new, old)
    assert errors == []
    assert new.metadata.generation == 2


UPDATABLE = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"activeDeadlineSeconds": 60},
            ["spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous value"],
        ),
        (
            {"activeDeadlineSeconds": None},
            ["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"],
        ),
        (
            {"activeDeadlineSeconds": -1},
            [
                "spec.activeDeadlineSeconds: Invalid value: -1: must be between 1 and 2147483647, inclusive",
                "spec.activeDeadlineSeconds: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ],
        ),
        (
            {"tolerations": []},
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
        ),
        (
            {"schedulingGates": [{"name": "a.b/c"}]},
            [
                "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, "
                "but found new scheduling gate 'a.b/c'"
            ],
        ),
        (
            {"initContainers": [{"name": "i", "image": "x"}]},
            ["spec.initContainers: Forbidden: pod updates may not add or remove containers"],
        ),
    ],
)
def test_refused_updates(change: dict[str, Any], expected: list[str]) -> None:
    old = created_pod(activeDeadlineSeconds=50, tolerations=[{"key": "x", "operator": "Exists"}])
    _, errors = updated(PodStrategy(), changed(old, **change), old)
    assert errors == expected


def test_the_diff_of_a_refused_update_is_upstreams() -> None:
    container = {"name": "c", "image": "one", "env": [{"name": "A", "value": "b"}]}
    old = created_pod(
        containers=[container],
        initContainers=[{"name": "i", "image": "one"}],
        terminationGracePeriodSeconds=5,
        activeDeadlineSeconds=50,
    )
    _, errors = updated(PodStrategy(), changed(old, nodeName="n"), old)
    assert errors == [
        UPDATABLE + "@@ -80,7 +80,7 @@\n"
        '  "NodeSelector": null,\n'
        '  "ServiceAccountName": "",\n'
        '  "AutomountServiceAccountToken": null,\n'
        '- "NodeName": "",\n'
        '+ "NodeName": "n",\n'
        '  "SecurityContext": {\n'
        '   "HostNetwork": false,\n'
        '   "HostPID": false,\n'
    ]


def test_a_gated_pod_may_be_narrowed_down_to_fewer_nodes() -> None:
    old = created_pod(schedulingGates=[{"name": "a.b/c"}], nodeSelector={"a": "b"})
    terms = [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    new, errors = updated(PodStrategy(), changed(old, nodeSelector={"a": "b", "c": "d"}, affinity=affinity), old)
    assert errors == []
    _, errors = updated(PodStrategy(), changed(old, nodeSelector={"a": "c"}), old)
    assert errors == [
        'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed '
        "(no mutations or deletions)"
    ]
    _, errors = updated(PodStrategy(), changed(new, affinity=None), new)
    assert errors == [
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: "
        "Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed"
    ]


def test_annotations_of_static_pods_stay() -> None:
    old = created_pod(nodeName="n", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})
    new = deep_copy(old)
    new.metadata.annotations = {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}
    _, errors = updated(PodStrategy(), new, old)
    assert errors == [
        "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod annotation",
        "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: "
        "may not add AppArmor annotations",
    ]


@pytest.mark.parametrize(
    ("node", "phase", "asked", "kept"),
    [
        ("n", "Running", None, 30),
        ("n", "Running", 5, 5),
        ("n", "Running", -5, 1),
        ("", "Pending", 5, 0),
        ("n", "Succeeded", 5, 0),
        ("n", "Failed", None, 0),
    ],
)
def test_grace_on_deletion(node: str, phase: str, asked: int | None, kept: int) -> None:
    pod = created_pod()
    pod.spec.node_name, pod.status.phase = node, phase
    options = DeleteOptions(grace_period_seconds=asked)
    assert PodStrategy().check_graceful_delete(CTX, pod, options)
    assert options.grace_period_seconds == kept


# Status


def test_a_status_update_keeps_the_rest_and_what_old_clients_do_not_know() -> None:
    old = created_pod()
    old.status.observed_generation = 3
    old.status.conditions = [PodCondition(type="Ready", status="True", observed_generation=3)]
    new = changed(old, nodeName="n")
    new.status = PodStatus(phase="Running", conditions=[PodCondition(type="Ready", status="False")])
    new, errors = updated(PodStatusStrategy(), new, old)
    assert errors == []
    assert new.spec == old.spec
    assert (new.status.qos_class, new.status.observed_generation) == ("BestEffort", 3)
    assert new.status.conditions[0].observed_generation == 3


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"qosClass": "Burstable"}, ['status.qosClass: Invalid value: "Burstable": field is immutable']),
        (
            {"podIPs": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}]},
            [
                'status.podIPs: Invalid value: [{"IP":"1.1.1.1"},{"IP":"1.1.1.2"}]: '
                "may specify no more than one IP for each IP family"
            ],
        ),
        ({"podIPs": [{"ip": "1.1.1.1"}, {"ip": "fd00::1"}]}, []),
        (
            {"hostIPs": [{"ip": "1.1.1.1"}]},
            ['status.hostIPs[0].ip: Invalid value: "1.1.1.1": must be equal to `hostIP`'],
        ),
        (
            {"containerStatuses": [{"name": "c", "state": {"running": {}}}]},
            ["status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"],
        ),
        (
            {"resourceClaimStatuses": [{"name": "r"}]},
            [
                'status.resourceClaimStatuses[0].name: Invalid value: "r": '
                "must match the name of an entry in `spec.resourceClaims`"
            ],
        ),
    ],
)
def test_refused_statuses(status: dict[str, Any], expected: list[str]) -> None:
    old = created_pod(restartPolicy="Never")
    old.status.container_statuses = from_plain(
        PodStatus, {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]}
    ).container_statuses
    new = deep_copy(old)
    new.status = from_plain(PodStatus, status)
    _, errors = updated(PodStatusStrategy(), new, old)
    assert errors == expected


# Ephemeral containers


def test_ephemeral_containers_come_but_do_not_change_or_go() -> None:
    old = created_pod()
    strategy = PodEphemeralContainersStrategy()
    debug = {"name": "debug", "image": "busybox"}
    new, errors = updated(strategy, changed(old, ephemeralContainers=[debug], hostname="h"), old)
    assert errors == []
    assert (new.spec.hostname, new.metadata.generation) == ("", 2)
    _, errors = updated(strategy, changed(new, ephemeralContainers=[debug | {"image": "other"}]), new)
    assert errors == [
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be changed\n'
        "@@ -1,6 +1,6 @@\n {\n"
        '  "Name": "debug",\n- "Image": "busybox",\n+ "Image": "other",\n'
        '  "Command": null,\n  "Args": null,\n  "WorkingDir": "",\n'
    ]
    _, errors = updated(strategy, changed(new, ephemeralContainers=[]), new)
    assert errors == ['spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n']


def test_ephemeral_containers_are_not_for_serving() -> None:
    old = created_pod(volumes=[{"name": "v"}])
    container = {
        "name": "c",
        "image": "x",
        "ports": [{"containerPort": 80}],
        "livenessProbe": {"exec": {"command": ["a"]}},
        "targetContainerName": "none",
        "volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "b"}],
    }
    _, errors = updated(PodEphemeralContainersStrategy(), changed(old, ephemeralContainers=[container]), old)
    path = "spec.ephemeralContainers[0]"
    assert errors == [
        f'{path}.name: Duplicate value: "c"',
        f'{path}.targetContainerName: Not found: "none"',
        f"{path}.ports: Forbidden: cannot be set for an Ephemeral Container",
        f"{path}.livenessProbe: Forbidden: cannot be set for an Ephemeral Container",
        f"{path}.volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container",
    ]


# Resizing


def sized(**resources: dict[str, str]) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "x", "resources": resources}]}


BURSTABLE = {"limits": {"cpu": "200m", "memory": "128Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}}


def test_resizing_changes_cpu_and_memory_only() -> None:
    old = created_pod(**sized(**BURSTABLE))
    asked = changed(old, **sized(**BURSTABLE | {"requests": {"cpu": "150m", "memory": "64Mi"}}), hostname="h")
    new, errors = updated(PodResizeStrategy(), asked, old)
    assert errors == []
    assert (new.spec.hostname, new.metadata.generation) == ("", 2)
    assert (new.spec.containers or [])[0].resources.requests["cpu"] == "150m"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            sized(**BURSTABLE | {"requests": {"cpu": "250m", "memory": "64Mi"}}),
            [
                'spec.containers[0].resources.requests: Invalid value: "250m": '
                "must be less than or equal to cpu limit of 200m"
            ],
        ),
        (
            sized(**BURSTABLE | {"requests": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1Gi"}}),
            ["spec: Forbidden: only cpu and memory resources are mutable"],
        ),
        (
            {"containers": [{"name": "c", "image": "x"}]},
            [
                'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
                "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
                "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
            ],
        ),
        (
            {"containers": [{"name": "c", "image": "x", "resources": BURSTABLE}, {"name": "d", "image": "x"}]},
            ["spec.containers: Forbidden: containers may not be added or removed on resize"],
        ),
        (
            {"containers": [{"name": "d", "image": "x", "resources": BURSTABLE}]},
            ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"],
        ),
    ],
)
def test_refused_sizes(spec: dict[str, Any], expected: list[str]) -> None:
    old = created_pod(**sized(**BURSTABLE))
    _, errors = updated(PodResizeStrategy(), changed(old, **spec), old)
    assert errors == expected


def test_pod_level_resources_can_be_resized() -> None:
    old = created_pod(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "4"}})
    asked = changed(old, resources={"requests": {"cpu": "3"}, "limits": {"cpu": "4"}})
    new, errors = updated(PodResizeStrategy(), asked, old)
    assert errors == []
    assert new.spec.resources is not None
    assert new.spec.resources.requests == {"cpu": "3"}
