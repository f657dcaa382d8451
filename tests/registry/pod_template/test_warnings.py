"""What clients are told about valid pods."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.machinery.errors.field import Path
from steersman.registry.core.pods.strategy import PodStrategy
from steersman.registry.pod_template.warnings import warnings_for_pod_template
from steersman.rest.context import Context
from tests.registry.podspecs import CONTAINER, created_pod, template


def ports(*each: dict[str, Any]) -> dict[str, Any]:
    return {"containers": [CONTAINER | {"ports": list(each)}]}


P0 = "spec.containers[0].ports"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        (
            {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
        ),
        (
            {"hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}]},
            ['spec.hostAliases[1].ip: duplicate ip "1.1.1.1"'],
        ),
        (
            {"imagePullSecrets": [{"name": ""}]},
            ['spec.imagePullSecrets[0].name: invalid empty name ""'],
        ),
        (
            {"containers": [CONTAINER | {"resources": {"requests": {"memory": "1500m"}}}]},
            [
                'spec.containers[0].resources.requests[memory]: fractional byte value "1500m" is invalid, '
                "must be an integer"
            ],
        ),
        (
            {"containers": [CONTAINER | {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]},
            ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
        ),
        (
            {"containers": [CONTAINER | {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}]},
            [],
        ),
        (ports({"containerPort": 80}, {"containerPort": 80}), [f"{P0}[1]: duplicate port definition with {P0}[0]"]),
        (
            ports({"containerPort": 80, "hostPort": 1}, {"containerPort": 80}),
            [f"{P0}[1]: overlapping port definition with {P0}[0]"],
        ),
        (
            ports({"containerPort": 80, "hostIP": "1.1.1.1"}),
            [
                f"{P0}[0]: hostIP set without hostPort: "
                "{Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.1.1.1}"
            ],
        ),
        (
            {
                "volumes": [
                    {
                        "name": "v",
                        "configMap": {"name": "c", "items": [{"key": "a", "path": "p"}, {"key": "b", "path": "p/q/"}]},
                    }
                ]
            },
            ['volume "v" (ConfigMap "c"): overlapping paths: "p/q" with "p"'],
        ),
        (
            {"volumes": [{"name": "v", "rbd": {"monitors": ["m"], "image": "i"}}]},
            ["spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+"],
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            ["spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod"],
        ),
        (
            {"dnsConfig": {"nameservers": ["FD00::1"]}},
            [
                'spec.dnsConfig.nameservers[0]: IPv6 address "FD00::1" should be in RFC 5952 canonical format '
                '("fd00::1")'
            ],
        ),
    ],
)
def test_warnings(spec: dict[str, Any], expected: list[str]) -> None:
    assert list(PodStrategy().warnings_on_create(Context(), created_pod(**spec))) == expected


def test_a_name_that_is_no_host_name() -> None:
    (warning,) = PodStrategy().warnings_on_create(Context(), created_pod("a.b"))
    assert warning == (
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    )


def test_templates_are_warned_about_where_they_stand() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    made = template({"annotations": {key: "unconfined"}}, terminationGracePeriodSeconds=-1)
    assert list(warnings_for_pod_template(made, Path("spec", "template"))) == [
        f'spec.template.metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead',
        "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; "
        "negative values are invalid and will be treated as 1",
    ]
