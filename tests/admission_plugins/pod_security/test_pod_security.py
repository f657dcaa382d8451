"""Tests of PodSecurity: the policies in a namespace's labels, and their effect on pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from steersman.admission.interface import NamespaceState
from steersman.admission_plugins.pod_security import pod_security
from steersman.admission_plugins.pod_security.levels import NO_POLICY, LevelVersion, Policy, policy_of
from steersman.admission_plugins.pod_security.metrics import PodSecurityMetrics
from steersman.admission_plugins.pod_security.pod_security import Configuration, PodSecurity
from steersman.api.apps.v1 import Deployment
from steersman.api.core.v1 import Namespace, Pod, ReplicationController
from steersman.authentication.user import UserInfo
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.metrics import Registry
from steersman.testing import Client
from tests.admission_plugins.pods_and_namespaces import CONTAINER, a_write, admitted, an_update, make_pod, refusal

PREFIX = "pod-security.kubernetes.io/"
HOST = {"hostNetwork": True}
HOST_TEXT = "host namespaces (hostNetwork=true)"


def labels(**modes: str) -> dict[str, str]:
    """Return labels of a namespace; `enforce_version="v1.20"` is the label enforce-version."""
    return {PREFIX + mode.replace("_", "-"): value for mode, value in modes.items()}


def namespace_state(**modes: str) -> NamespaceState:
    """Return the state of a namespace with these labels."""
    return NamespaceState("Active", labels(**modes))


async def iterate_pods(pods: Iterable[Pod]) -> AsyncIterator[tuple[Pod, bool]]:
    """Yield pods as the server passes them to the plugin, marked as small."""
    for pod in pods:
        yield pod, False


def metrics() -> PodSecurityMetrics:
    return PodSecurityMetrics(Registry())


def plugin(*pods: Pod, **modes: str) -> PodSecurity:
    return PodSecurity(
        {"ns": namespace_state(**modes)}.get, lambda namespace: (len(pods), iterate_pods(pods)), metrics()
    )


async def test_without_labels_any_pod_will_do() -> None:
    assert policy_of({"app": "a"}) is NO_POLICY
    record = await admitted(plugin(), a_write(make_pod(HOST)))
    assert record.warnings == []


async def test_a_pod_that_violates_what_is_enforced_is_refused() -> None:
    error = await refusal(plugin(enforce="baseline"), a_write(make_pod(HOST)))
    assert (error.code, error.message) == (
        403,
        f'pods "p" is forbidden: violates PodSecurity "baseline:latest": {HOST_TEXT}',
    )
    await admitted(plugin(enforce="baseline"), a_write(make_pod()))


async def test_every_violation_is_told_in_order() -> None:
    error = await refusal(plugin(enforce="restricted", enforce_version="v1.24"), a_write(make_pod(HOST)))
    assert error.message == (
        'pods "p" is forbidden: violates PodSecurity "restricted:v1.24": host namespaces (hostNetwork=true), '
        'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
        'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
        '"Localhost")'
    )


async def test_what_is_to_be_warned_of_is_warned_of() -> None:
    record = await admitted(plugin(warn="baseline", warn_version="v1.20"), a_write(make_pod(HOST)))
    assert record.warnings == [f'would violate PodSecurity "baseline:v1.20": {HOST_TEXT}']
    record = await admitted(plugin(audit="restricted"), a_write(make_pod(HOST)))
    assert record.warnings == []


async def test_templates_are_only_warned_of() -> None:
    template = {"spec": {**HOST, "containers": [CONTAINER]}}
    deployment = from_plain(Deployment, {"metadata": {"name": "d", "namespace": "ns"}, "spec": {"template": template}})

    def write(**more: Any) -> Any:
        return a_write(deployment, resource="deployments", group="apps", **more)

    record = await admitted(plugin(enforce="baseline"), write())
    assert record.warnings == [f'would violate PodSecurity "baseline:latest": {HOST_TEXT}']
    assert (await admitted(plugin(enforce="baseline", warn="privileged"), write())).warnings == []
    assert (await admitted(plugin(enforce="baseline"), write(subresource="scale"))).warnings == []
    bare = from_plain(ReplicationController, {"metadata": {"name": "r", "namespace": "ns"}})
    assert (await admitted(plugin(warn="baseline"), a_write(bare, resource="replicationcontrollers"))).warnings == []


async def test_only_updates_that_run_something_else_are_looked_at() -> None:
    strict = plugin(enforce="baseline")
    old = make_pod(HOST)
    await admitted(strict, an_update(make_pod(HOST, labels={"a": "b"}), old))
    other_image = make_pod({**HOST, "containers": [CONTAINER | {"image": "j"}]})
    await refusal(strict, an_update(other_image, old))
    debugged = make_pod({"ephemeralContainers": [CONTAINER | {"name": "e", "securityContext": {"privileged": True}}]})
    error = await refusal(strict, an_update(debugged, make_pod(), subresource="ephemeralcontainers"))
    assert error.message.endswith('privileged (container "e" must not set securityContext.privileged=true)')
    await admitted(strict, an_update(debugged, debugged, subresource="ephemeralcontainers"))
    await admitted(strict, an_update(other_image, old, subresource="status"))


@pytest.mark.parametrize(
    ("modes", "enforce", "warn"),
    [
        ({}, "privileged:latest", "privileged:latest"),
        ({"enforce": "baseline"}, "baseline:latest", "baseline:latest"),
        ({"enforce": "baseline", "enforce_version": "v1.20"}, "baseline:v1.20", "baseline:v1.20"),
        (
            {"enforce": "baseline", "enforce_version": "v1.20", "warn_version": "v1.21"},
            "baseline:v1.20",
            "baseline:v1.21",
        ),
        ({"enforce": "restricted", "warn": "privileged"}, "restricted:latest", "privileged:latest"),
        ({"enforce": "nonsense"}, "restricted:latest", "privileged:latest"),
        ({"enforce": "baseline", "warn": "nonsense"}, "baseline:latest", "privileged:latest"),
    ],
)
def test_labels_and_what_they_leave_out(modes: dict[str, Any], enforce: str, warn: str) -> None:
    policy = policy_of(labels(**modes))
    assert (str(policy.enforce), str(policy.warn)) == (enforce, warn)


def make_namespace(name: str = "ns", **modes: str) -> Namespace:
    return from_plain(Namespace, {"metadata": {"name": name, "labels": labels(**modes)}})


async def warnings_of_update(security: PodSecurity, old: Namespace, new: Namespace) -> list[str]:
    """Return the warnings of an update of the namespace."""
    return (await admitted(security, an_update(new, old, resource="namespaces", namespace="ns"))).warnings


async def test_labels_that_say_nothing_known_are_refused() -> None:
    bad = make_namespace(enforce="strict", warn_version="1.2")
    error = await refusal(plugin(), a_write(bad, resource="namespaces", namespace="ns"))
    assert (error.code, error.message) == (
        422,
        'Namespace "ns" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": '
        "must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: "
        'Invalid value: "1.2": must be "latest" or "v1.x"]',
    )
    await refusal(plugin(), an_update(bad, make_namespace(), resource="namespaces", namespace="ns"))
    assert await warnings_of_update(plugin(), bad, bad) == []


def owned(name: str, uid: str, spec: dict[str, Any]) -> Pod:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": uid, "controller": True}
    return make_pod(spec, name=name, ownerReferences=[reference])


async def test_a_stricter_label_tells_of_the_pods_that_are_there() -> None:
    pods = [
        make_pod(name="good"),
        make_pod(HOST, name="b"),
        make_pod(HOST, name="a"),
        make_pod({"hostPID": True, "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, name="c"),
        *(owned(f"r{number}", "u", {"hostIPC": True, **HOST}) for number in range(3)),
    ]
    assert await warnings_of_update(plugin(*pods), make_namespace(), make_namespace(enforce="baseline")) == [
        'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 4 other pods): host namespaces",
        "c: host namespaces, hostPath volumes",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"enforce": "restricted"}, {"enforce": "baseline"}),
        ({"enforce": "baseline"}, {"enforce": "privileged"}),
        ({"enforce": "baseline"}, {"enforce": "baseline", "warn": "restricted"}),
    ],
)
async def test_a_label_that_is_no_stricter_looks_at_no_pods(before: dict[str, Any], after: dict[str, Any]) -> None:
    def none(namespace: str) -> tuple[int, AsyncIterator[tuple[Pod, bool]]]:
        raise AssertionError("not asked for")

    security = PodSecurity(lambda name: None, none, metrics())
    assert await warnings_of_update(security, make_namespace(**before), make_namespace(**after)) == []


async def test_one_pod_of_each_controller_comes_first_and_the_rest_if_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_security, "MAX_PODS", 3)
    pods = [*(owned(f"r{number}", "u", {}) for number in range(3)), make_pod(HOST, name="last")]
    assert await warnings_of_update(plugin(*pods), make_namespace(), make_namespace(enforce="baseline")) == [
        "new PodSecurity enforce level only checked against the first 3 of 4 existing pods",
        'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
        "last: host namespaces",
    ]


async def test_over_the_wire_warnings_and_refusals(api: Client, namespace: str) -> None:
    target = f"/api/v1/namespaces/{namespace}"
    await api.post(f"{target}/serviceaccounts", {"metadata": {"name": "default"}})
    pod: dict[str, Any] = {"metadata": {"name": "host"}, "spec": {"containers": [CONTAINER], **HOST}}
    assert (await api.post(f"{target}/pods", pod)).status == 201
    patch = {"metadata": {"labels": labels(enforce="baseline")}}
    answer = await api.request("PATCH", target, patch, content_type="application/merge-patch+json")
    assert answer.headers.get_all("warning") == [
        f'299 - "existing pods in namespace \\"{namespace}\\" violate the new PodSecurity enforce level '
        '\\"baseline:latest\\""',
        '299 - "host: host namespaces"',
    ]
    pod["metadata"]["name"] = "other"
    answer = await api.post(f"{target}/pods", pod)
    assert answer.json()["message"].endswith(f'violates PodSecurity "baseline:latest": {HOST_TEXT}')


# Configured plugin

BASELINE = Policy(*(LevelVersion("baseline", 30) for _ in "123"))  # type: ignore[arg-type]
CONFIGURED = Configuration(
    BASELINE,
    usernames=frozenset({"bob"}),
    namespaces=frozenset({"exempt"}),
    runtime_classes=frozenset({"gvisor"}),
)


async def test_what_pods_were_held_against_is_counted() -> None:
    namespace = namespace_state(
        enforce="baseline", enforce_version="v1.30", audit="restricted", audit_version="v1.99", warn="nonsense"
    )
    registry = Registry()
    counted = PodSecurityMetrics(registry)
    security = PodSecurity({"ns": namespace}.get, lambda name: (0, iterate_pods(())), counted, CONFIGURED)
    await admitted(security, a_write(make_pod()))
    await refusal(security, a_write(make_pod(HOST)))
    await admitted(security, a_write(make_pod(HOST, namespace="exempt")))
    await refusal(security, a_write(make_pod(namespace="gone")))
    text = "".join(registry.expose())
    lines = [line for line in text.splitlines() if not line.startswith("#") and not line.endswith(" 0")]
    about = 'request_operation="create",resource="pod",subresource=""'

    def evaluated(decision: str, level: str, version: str, mode: str, times: int) -> str:
        labels = f'decision="{decision}",policy_level="{level}",policy_version="{version}",mode="{mode}",{about}'
        return f"pod_security_evaluations_total{{{labels}}} {times}"

    assert set(lines) == {
        evaluated("allow", "baseline", "v1.30", "enforce", 1),
        evaluated("deny", "restricted", "future", "audit", 2),
        evaluated("deny", "baseline", "v1.30", "enforce", 1),
        f"pod_security_exemptions_total{{{about}}} 1",
        f'pod_security_errors_total{{fatal="false",{about}}} 2',
        f'pod_security_errors_total{{fatal="true",{about}}} 1',
    }


def make_plugin(*pods: Pod, **modes: str) -> PodSecurity:
    namespaces = {"ns": namespace_state(**modes), "exempt": namespace_state(**modes)}
    return PodSecurity(namespaces.get, lambda namespace: (len(pods), iterate_pods(pods)), metrics(), CONFIGURED)


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ({}, ("baseline:v1.30", "baseline:v1.30")),
        ({"enforce": "restricted"}, ("restricted:v1.30", "restricted:v1.30")),
        ({"enforce": "privileged"}, ("privileged:v1.30", "baseline:v1.30")),
        ({"enforce": "restricted", "enforce_version": "v1.20"}, ("restricted:v1.20", "restricted:v1.20")),
        ({"enforce": "baseline", "enforce_version": "v1.20"}, ("baseline:v1.20", "baseline:v1.30")),
        ({"enforce": "restricted", "warn_version": "latest"}, ("restricted:v1.30", "restricted:latest")),
        ({"enforce_version": "latest"}, ("baseline:latest", "baseline:v1.30")),
        ({"enforce": "nonsense"}, ("restricted:v1.30", "baseline:v1.30")),
        ({"enforce_version": "nonsense"}, ("baseline:latest", "baseline:v1.30")),
    ],
)
def test_defaults_hold_where_labels_say_nothing(modes: dict[str, str], expected: tuple[str, str]) -> None:
    policy = policy_of(labels(**modes), BASELINE)
    assert (str(policy.enforce), str(policy.warn)) == expected


async def test_nothing_is_asked_of_who_and_what_is_exempt() -> None:
    assert (await refusal(make_plugin(), a_write(make_pod(HOST)))).code == 403
    writer = a_write(make_pod(HOST))
    writer.user = UserInfo("bob")
    pods = (make_pod(HOST, namespace="exempt"), make_pod({**HOST, "runtimeClassName": "gvisor"}))
    for record in (writer, *map(a_write, pods)):
        assert (await admitted(make_plugin(), record)).warnings == []
    assert (await refusal(make_plugin(), a_write(make_pod({**HOST, "runtimeClassName": "kata"})))).code == 403


async def test_templates_of_exempt_runtime_classes_are_not_warned_of() -> None:
    for name, expected in (("gvisor", 0), ("kata", 1)):
        template = {"spec": {**HOST, "containers": [CONTAINER], "runtimeClassName": name}}
        plain = {"metadata": {"name": "d", "namespace": "ns"}, "spec": {"template": template}}
        write = a_write(from_plain(Deployment, plain), resource="deployments", group="apps")
        assert len((await admitted(make_plugin(), write)).warnings) == expected


async def test_labels_of_an_exempt_namespace_are_said_to_mean_nothing() -> None:
    ignored = 'namespace "exempt" is exempt from Pod Security, and the policy ({}) will be ignored'
    for modes, told in (
        ({"enforce": "restricted"}, ["enforce=restricted:v1.30"]),
        ({"audit": "restricted", "warn_version": "v1.1"}, ["audit=restricted:v1.30, warn=baseline:v1.1"]),
        ({"enforce": "baseline"}, []),
        ({"enforce": "privileged", "audit": "privileged", "warn": "privileged"}, []),
    ):
        write = a_write(make_namespace("exempt", **modes), resource="namespaces")
        assert (await admitted(make_plugin(), write)).warnings == [ignored.format(each) for each in told]
    new, old = make_namespace("exempt", enforce="restricted"), make_namespace("exempt")
    record = await admitted(make_plugin(make_pod(HOST)), an_update(new, old, resource="namespaces"))
    assert record.warnings == [ignored.format("enforce=restricted:v1.30")]
    record = await admitted(make_plugin(), an_update(new, new, resource="namespaces"))
    assert record.warnings == []


async def test_existing_pods_of_exempt_runtime_classes_are_not_counted() -> None:
    pods = [make_pod({**HOST, "runtimeClassName": "gvisor"}, name="a"), make_pod(HOST, name="b")]
    write = an_update(make_namespace("ns", enforce_version="latest"), make_namespace("ns"), resource="namespaces")
    record = await admitted(make_plugin(*pods), write)
    assert record.warnings == [
        'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
        "b: host namespaces",
    ]
