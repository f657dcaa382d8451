"""Tests that the cost of admission grows linearly with the pod and the objects that it depends on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.admission.interface import Plugin
from steersman.admission_plugins.extended_resource_toleration import ExtendedResourceToleration
from steersman.admission_plugins.limit_ranger import LimitRanger
from steersman.admission_plugins.pod_security import checks as pod_security_checks
from steersman.admission_plugins.pod_security.levels import RESTRICTED, LevelVersion
from steersman.admission_plugins.pod_toleration_restriction import Annotations, PodTolerationRestriction
from steersman.admission_plugins.quota.pods import PodEvaluator
from steersman.admission_plugins.quota.resource_quota import matches, snapshot
from steersman.admission_plugins.runtime_class import RuntimeClass
from steersman.admission_plugins.service_account import AccountSummary, ServiceAccount
from steersman.api.core.v1 import LimitRange, ResourceQuota
from steersman.api.node.v1 import RuntimeClass as Class
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.errors.status import StatusError
from steersman.rest.objects import Reading
from tests.admission_plugins.pods_and_namespaces import a_write, make_pod
from tests.counted_work import grows_too_fast, with_texts

SIZES = 100, 200, 400


def run_without_waiting(work: Any) -> None:
    """Run a coroutine that never waits, or nothing if a plugin has returned None."""
    if work is None:
        return
    try:
        with pytest.raises(StopIteration):
            work.send(None)
    except StatusError:
        pass


def plugin_run(plugin: Plugin, spec: dict[str, Any]) -> Callable[[], None]:
    record = a_write(with_texts(make_pod(spec)))

    def judge() -> None:
        run_without_waiting(plugin.admit(record))
        run_without_waiting(plugin.validate(record))

    return judge


def container(name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", **more}


def test_many_devices_are_tolerated_in_one_pass() -> None:
    def work(count: int) -> Callable[[], None]:
        names = [f"of-{count}.example.com/{number}" for number in range(count)]  # never seen before, so in no cache
        tolerations = [{"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in names[::2]]
        resources = {"requests": dict.fromkeys(names, "1")}
        return plugin_run(
            ExtendedResourceToleration(), {"containers": [container(resources=resources)], "tolerations": tolerations}
        )

    assert not grows_too_fast(work, SIZES)


def test_secrets_of_a_pod_are_looked_up_among_those_of_its_account() -> None:
    def work(count: int) -> Callable[[], None]:
        names = tuple(f"s{number}" for number in range(count))
        account = with_texts(list(names))
        found = AccountSummary("default", True, tuple(account), frozenset(account))
        spec = {"imagePullSecrets": [{"name": name} for name in reversed(names)]}
        return plugin_run(ServiceAccount(lambda *_: found), spec)

    assert not grows_too_fast(work, SIZES)


def test_tolerations_of_a_pod_are_looked_up_among_those_of_its_class_and_namespace() -> None:
    tolerations = [{"key": f"k{number}", "operator": "Exists"} for number in range(SIZES[-1])]

    def of_class(count: int) -> Callable[[], None]:
        found = from_plain(Class, {"handler": "h", "scheduling": {"tolerations": tolerations[:count]}})
        return plugin_run(
            RuntimeClass(lambda _: with_texts(found)), {"runtimeClassName": "c", "tolerations": tolerations[:count]}
        )

    def of_namespace(count: int) -> Callable[[], None]:
        text = "[" + ",".join(f'{{"key": "k{number}", "operator": "Exists"}}' for number in range(count)) + "]"
        plugin = PodTolerationRestriction(lambda _: Annotations(text, text))
        return plugin_run(plugin, {"tolerations": tolerations[:count]})

    assert not grows_too_fast(of_class, SIZES)
    assert not grows_too_fast(of_namespace, SIZES)


def test_the_checks_of_pod_security_go_through_a_pod_once_each() -> None:
    def work(count: int) -> Callable[[], object]:
        bad = {
            "capabilities": {"add": [f"C{number}" for number in range(count)]},
            "seccompProfile": {"type": "x"},
            "appArmorProfile": {"type": "x"},
            "seLinuxOptions": {"type": "t"},
        }
        ports = [{"containerPort": 1, "hostPort": number + 1} for number in range(count)]
        containers = [container(f"c{number}", securityContext={**bad, "capabilities": {}}) for number in range(count)]
        volumes = [{"name": f"v{number}", "hostPath": {"path": "/"}} for number in range(count)]
        sysctls = [{"name": f"s{number}", "value": "1"} for number in range(count)]
        annotations = {f"container.apparmor.security.beta.kubernetes.io/c{n}": "x" for n in range(count)}
        pod = with_texts(
            make_pod(
                {
                    "containers": [container(ports=ports, securityContext=bad), *containers],
                    "volumes": volumes,
                    "securityContext": {"sysctls": sysctls},
                },
                annotations=annotations,
            )
        )
        return lambda: pod_security_checks.details(
            pod_security_checks.violations(LevelVersion(RESTRICTED, 36), pod.metadata, pod.spec)
        )

    assert not grows_too_fast(work, SIZES)


def ranger(**limits: Any) -> LimitRanger:
    class Ranges:
        async def read_all(self, namespace: str, reading: Reading[Any]) -> list[Any]:
            return [reading.make(from_plain(LimitRange, {"spec": {"limits": [{"type": "Container", **limits}]}}))]

        def takes_long(self, namespace: str) -> bool:
            return False

        def change_count(self) -> int:
            return 1

        def subscribe(self, changed: Callable[[], None]) -> None:
            pass

        def is_empty(self) -> bool:
            return False

    return LimitRanger(Ranges())  # type: ignore[arg-type]


def test_many_defaults_are_not_written_into_many_containers() -> None:
    amounts = {f"example.com/{number}": "1" for number in range(1000)}
    record = a_write(make_pod({"containers": [container(f"c{number}") for number in range(1000)]}))
    with pytest.raises(StatusError) as refused:
        asyncio.run(ranger(defaultRequest=amounts).admit(record))
    assert refused.value.code == 413


def test_many_bounds_are_not_held_against_many_containers_to_the_end() -> None:
    amounts = {f"example.com/{number}": "1" for number in range(1000)}
    record = a_write(make_pod({"containers": [container(f"c{number}") for number in range(1000)]}))
    with pytest.raises(StatusError) as refused:
        asyncio.run(ranger(min=amounts).validate(record))
    assert refused.value.message.count("minimum example.com/") == 1000


def test_scopes_of_a_quota_that_are_there_twice_are_asked_once() -> None:
    def work(count: int) -> Callable[[], object]:
        quota = from_plain(ResourceQuota, {"spec": {"scopes": ["CrossNamespacePodAffinity"] * count}})
        term = {"topologyKey": "t"}
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term] * count}
        pod = make_pod({"affinity": {"podAffinity": terms}})
        account = snapshot(quota)
        return lambda: matches(account, pod, PodEvaluator())

    assert not grows_too_fast(work, SIZES)
