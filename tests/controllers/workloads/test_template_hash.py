"""Tests of pod template hashes; the expected ones are from kube-controller-manager 1.36."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.api.core.v1 import PodTemplateSpec
from steersman.controllers.workloads.template_hash import fnv32a, is_same_template, template_hash
from steersman.machinery.codec.serializer import from_plain

SIMPLE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "imagePullPolicy": "Always",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
}
MANY_FIELDS: dict[str, Any] = json.loads("""
{"metadata": {"annotations": {"x": "\\u00e9 <&>"}, "labels": {"B": "2", "app": "a", "z": "1"}},
"spec": {"affinity": {"nodeAffinity":
{"preferredDuringSchedulingIgnoredDuringExecution": [{"preference": {"matchExpressions": [{"key": "a",
"operator": "In", "values": ["b"]}]}, "weight": 3}]}}, "containers": [{"args": ["x"], "command": ["a", "b c"],
"env": [{"name": "A", "value": "b"}, {"name": "N", "valueFrom": {"fieldRef": {"apiVersion": "v1",
"fieldPath": "metadata.name"}}}], "envFrom": [{"configMapRef": {"name": "cm"}}], "image": "i",
"imagePullPolicy": "Always", "lifecycle": {"preStop": {"exec": {"command": ["s"]}}},
"livenessProbe": {"failureThreshold": 3, "httpGet": {"httpHeaders": [{"name": "a", "value": "b"}], "path": "/",
"port": "web", "scheme": "HTTP"}, "periodSeconds": 3, "successThreshold": 1, "timeoutSeconds": 1}, "name": "c",
"ports": [{"containerPort": 80, "name": "web", "protocol": "TCP"}], "readinessProbe": {"failureThreshold": 3,
"periodSeconds": 10, "successThreshold": 1, "tcpSocket": {"port": 80}, "timeoutSeconds": 1},
"resources": {"limits": {"cpu": "1500m", "ephemeral-storage": "300Ti", "example.com/x": "3", "memory": "100Mi"},
"requests": {"cpu": "500m", "ephemeral-storage": "1e9", "example.com/x": "3", "memory": "64Mi"}},
"securityContext": {"capabilities": {"add": ["A"], "drop": ["ALL"]}, "runAsNonRoot": true, "runAsUser": 5},
"startupProbe": {"failureThreshold": 3, "grpc": {"port": 80, "service": "s"}, "periodSeconds": 10,
"successThreshold": 1, "timeoutSeconds": 1}, "terminationMessagePath": "/dev/termination-log",
"terminationMessagePolicy": "File", "volumeMounts": [{"mountPath": "/e", "name": "e"}]}],
"dnsConfig": {"options": [{"name": "o"}]}, "dnsPolicy": "ClusterFirst", "hostAliases": [{"ip": "1.2.3.4"}],
"imagePullSecrets": [{"name": "p"}], "initContainers": [{"image": "x", "imagePullPolicy": "Always", "name": "init",
"resources": {}, "restartPolicy": "Always", "terminationMessagePath": "/dev/termination-log",
"terminationMessagePolicy": "File"}], "nodeSelector": {"a": "d", "b": "c"}, "restartPolicy": "Always",
"schedulerName": "default-scheduler", "securityContext": {"fsGroup": 7}, "terminationGracePeriodSeconds": 0,
"tolerations": [{"effect": "NoExecute", "key": "a", "operator": "Exists", "tolerationSeconds": 5}],
"topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"app": "a"}}, "maxSkew": 1, "topologyKey": "z",
"whenUnsatisfiable": "ScheduleAnyway"}], "volumes": [{"emptyDir": {"sizeLimit": "0"}, "name": "e"}, {"name": "s",
"secret": {"defaultMode": 256, "secretName": "s"}}, {"name": "p", "projected": {"defaultMode": 420,
"sources": [{"serviceAccountToken": {"expirationSeconds": 900, "path": "t"}}]}}]}}
""")


def template(plain: dict[str, Any], **container: Any) -> PodTemplateSpec:
    (first,) = plain["spec"]["containers"]
    return from_plain(PodTemplateSpec, {**plain, "spec": {**plain["spec"], "containers": [{**first, **container}]}})


def test_a_simple_template_has_upstreams_hash() -> None:
    assert template_hash(template(SIMPLE)) == "868fcd64f9"
    assert template_hash(template(SIMPLE, image="j")) == "6c9945cd4d"


def test_many_fields_and_quantities_have_upstreams_hash() -> None:
    assert template_hash(template(MANY_FIELDS)) == "6489f8ffc6"


def test_a_collision_makes_another_hash() -> None:
    hashes = {template_hash(template(SIMPLE), count) for count in (None, 0, 1, 2)}
    assert len(hashes) == 4


def test_the_hash_goes_on_where_it_stopped() -> None:
    assert fnv32a(b"foobar") == fnv32a(b"bar", fnv32a(b"foo")) == 0xBF9CF968


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("1024", "1Ki", True), ("1", "1000m", True), ("1", "2", False)],
)
def test_templates_are_the_same_however_quantities_are_written(one: str, other: str, *, same: bool) -> None:
    first, second = (template(SIMPLE, resources={"limits": {"memory": each}}) for each in (one, other))
    assert is_same_template(first, second) is same
