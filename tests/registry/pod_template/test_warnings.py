"""Warnings about valid pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import Path
from steersman.registry.core.pods.strategy import PodStrategy
from steersman.registry.pod_template import warnings
from steersman.registry.pod_template.path_warnings import Overlaps, are_apart
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


FEW = st.sampled_from((0, 1, 2))
PORTS = st.lists(
    st.builds(
        core.ContainerPort,
        name=st.sampled_from(("", "a", "b", "c", "d")),
        container_port=st.integers(1, 6),
        host_port=FEW,
        host_ip=st.sampled_from(("", "", "", "1.1.1.1")),
        protocol=st.sampled_from(("TCP", "UDP")),
    ),
    max_size=4,
)
VARIABLES = st.lists(
    st.builds(core.EnvVar, name=st.sampled_from("ABCDEF"), value=st.sampled_from(("", "$(A)"))), max_size=4
)
AMOUNTS = st.dictionaries(
    st.sampled_from(("memory", "ephemeral-storage", "cpu")), st.sampled_from(("1", "1Mi", "100m", "1500", "1.5k"))
)


@given(PORTS)
def test_nobody_is_warned_of_plain_ports(ports: list[core.ContainerPort]) -> None:
    spec = core.PodSpec(containers=[core.Container(ports=[port]) for port in ports])
    if warnings._have_plain_ports(spec.containers or ()):
        assert list(warnings._port_warnings(spec, Path("spec"))) == []


@given(VARIABLES, AMOUNTS, AMOUNTS)
def test_nobody_is_warned_of_plain_containers(
    variables: list[core.EnvVar], requests: dict[str, str], limits: dict[str, str]
) -> None:
    resources = core.ResourceRequirements(requests=requests, limits=limits)
    container = core.Container(env=variables, resources=resources)
    if warnings._is_plain(container):
        assert list(warnings._container_warnings(container, Path("spec"))) == []


@given(st.lists(st.sampled_from(("", "a", "b", "a/b", "a/b/c", "ab")), max_size=4))
def test_files_that_are_apart_do_not_overlap(paths: list[str]) -> None:
    if are_apart(paths):
        assert Overlaps(paths).above == {}
        assert len(set(paths)) == len(paths)


def test_nobody_is_warned_of_a_usual_projected_volume() -> None:
    sources: list[dict[str, Any]] = [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "c", "items": [{"key": "a", "path": "ca.crt"}]}},
    ]
    volume = {"name": "v", "projected": {"sources": sources}}
    spec: dict[str, Any] = {"volumes": [volume], "serviceAccountName": "default"}
    assert list(PodStrategy().warnings_on_create(Context(), created_pod(**spec))) == []
    sources.append({"secret": {"name": "s", "items": [{"key": "a", "path": "token/a"}]}})
    (warning,) = PodStrategy().warnings_on_create(Context(), created_pod(**spec))
    assert warning == (
        'volume "v" (Projected): overlapping paths: "token/a" (Secret "s") with "token" (ServiceAccountToken)'
    )
