"""Defaults of pods and templates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.codec.serializer import to_plain
from steersman.registry.pod_template import image as images
from steersman.registry.pod_template.image import image_tag, pull_policy_for
from tests.registry.podspecs import bare_pod, defaulted_pod, template

MINIMAL = {
    "containers": [
        {
            "name": "c",
            "image": "nginx",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always",
        }
    ],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}


def test_the_smallest_pod_gets_what_every_pod_has() -> None:
    assert to_plain(defaulted_pod().spec) == MINIMAL | {"enableServiceLinks": True}


def test_a_template_gets_less_than_a_pod() -> None:
    assert to_plain(template().spec) == MINIMAL


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("nginx", "latest"),
        ("nginx:latest", "latest"),
        ("nginx:1.27", "1.27"),
        ("user/app", "latest"),
        ("localhost:5000/app", "latest"),
        ("localhost:5000/app:v1", "v1"),
        ("Registry.Example/app:v1", "v1"),
        ("quay.io/a/b@sha256:" + "0" * 64, ""),
        ("quay.io/a/b:t@sha256:" + "0" * 64, "t"),
        ("quay.io/a/b@sha256:" + "0" * 40, ""),
        ("Nginx", ""),
        ("a" * 64, ""),
        (" ", ""),
        ("x" * 5000, ""),
    ],
)
def test_the_tag_of_an_image(image: str, tag: str) -> None:
    assert image_tag(image) == tag


@given(st.text(max_size=80))
def test_any_text_has_a_tag_or_none(image: str) -> None:
    assert isinstance(image_tag(image), str)


def test_references_that_are_too_long_are_not_remembered() -> None:
    before = images._pull_policy.cache_info().currsize
    assert pull_policy_for("x" * 5000) == pull_policy_for("x" * 5000 + ":latest") == "IfNotPresent"
    assert images._pull_policy.cache_info().currsize == before
    assert pull_policy_for("nginx") == "Always"


def test_requests_follow_limits_in_pods_only() -> None:
    container = {"name": "c", "image": "x", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    container["resources"]["requests"] = {"cpu": "500m"}  # type: ignore[index]
    pod = defaulted_pod(containers=[container])
    assert pod.spec.containers is not None
    assert pod.spec.containers[0].resources.requests == {"cpu": "500m", "memory": "1Gi"}
    spec = template(containers=[container]).spec
    assert spec.containers is not None
    assert spec.containers[0].resources.requests == {"cpu": "500m"}


def test_amounts_finer_than_a_thousandth_are_rounded_up() -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1n", "memory": "1500u"}}}
    (made,) = defaulted_pod(containers=[container]).spec.containers or []
    assert made.resources.requests == {"cpu": "1m", "memory": "2m"}


def test_host_ports_follow_container_ports_on_the_hosts_network() -> None:
    container = {"name": "c", "image": "x", "ports": [{"containerPort": 80}]}
    (made,) = defaulted_pod(containers=[container], hostNetwork=True).spec.containers or []
    assert to_plain(made.ports[0]) == {"hostPort": 80, "containerPort": 80, "protocol": "TCP"}


def test_pod_level_requests_follow_containers_then_limits() -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "300m"}}}
    sidecar = {"name": "s", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "200m"}}}
    pod = defaulted_pod(
        containers=[container], initContainers=[sidecar], resources={"limits": {"cpu": "2", "memory": "1Gi"}}
    )
    assert pod.spec.resources is not None
    assert pod.spec.resources.requests == {"cpu": "500m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({}, {"emptyDir": {}}),
        ({"secret": {"secretName": "s"}}, {"secret": {"secretName": "s", "defaultMode": 420}}),
        ({"configMap": {"name": "s", "defaultMode": 0}}, {"configMap": {"name": "s", "defaultMode": 0}}),
        ({"hostPath": {"path": "/a"}}, {"hostPath": {"path": "/a", "type": ""}}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 420,
                }
            },
        ),
        (
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {
                "downwardAPI": {
                    "items": [{"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}],
                    "defaultMode": 420,
                }
            },
        ),
        (
            {"rbd": {"monitors": ["m"], "image": "i"}},
            {
                "rbd": {
                    "monitors": ["m"],
                    "image": "i",
                    "pool": "rbd",
                    "user": "admin",
                    "keyring": "/etc/ceph/keyring",
                }
            },
        ),
        ({"image": {"reference": "a:1"}}, {"image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}}),
    ],
)
def test_volumes(source: dict[str, Any], expected: dict[str, Any]) -> None:
    (volume,) = defaulted_pod(volumes=[{"name": "v", **source}]).spec.volumes
    assert to_plain(volume) == {"name": "v", **expected}


def test_probes_and_hooks() -> None:
    container = {
        "name": "c",
        "image": "x",
        "livenessProbe": {"httpGet": {"port": 80}},
        "readinessProbe": {"grpc": {"port": 80}},
        "lifecycle": {"preStop": {"httpGet": {"port": "web"}}},
    }
    (made,) = defaulted_pod(containers=[container]).spec.containers or []
    assert made.liveness_probe is not None
    assert made.readiness_probe is not None
    assert to_plain(made.liveness_probe) == {
        "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert to_plain(made.readiness_probe)["grpc"] == {"port": 80, "service": ""}
    assert to_plain(made.lifecycle) == {"preStop": {"httpGet": {"path": "/", "port": "web", "scheme": "HTTP"}}}


def test_the_service_account_has_two_names() -> None:
    spec = defaulted_pod(serviceAccount="old").spec
    assert (spec.service_account_name, spec.service_account) == ("old", "old")
    spec = defaulted_pod(serviceAccount="old", serviceAccountName="new").spec
    assert (spec.service_account_name, spec.service_account) == ("new", "new")


def test_a_negative_grace_period_is_one_second_in_pods() -> None:
    assert defaulted_pod(terminationGracePeriodSeconds=-5).spec.termination_grace_period_seconds == 1
    assert template(terminationGracePeriodSeconds=-5).spec.termination_grace_period_seconds == -5


def test_annotations_with_init_containers_are_dropped() -> None:
    annotations = {"pod.beta.kubernetes.io/init-containers": "[]", "keep": "x"}
    assert defaulted_pod(metadata={"annotations": annotations}).metadata.annotations == {"keep": "x"}


def test_defaults_are_the_same_twice() -> None:
    once = defaulted_pod(hostNetwork=True, volumes=[{"name": "v"}])
    again = to_plain(once)
    assert to_plain(defaulted_pod(**again["spec"])) == again
    assert bare_pod().spec.scheduler_name == ""
