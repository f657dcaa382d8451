"""Tests of ResourceQuota: charges, refusals, and concurrent writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steersman.admission.interface import CREATE, UPDATE, Attributes, Chain, Operation
from steersman.admission_plugins.quota.evaluators import Evaluator, ServiceEvaluator, VolumeClaimEvaluator
from steersman.admission_plugins.quota.pods import PodEvaluator
from steersman.admission_plugins.quota.resource_quota import LimitedResource, ResourceQuota
from steersman.api.core import v1 as core
from steersman.authentication.user import UserInfo
from steersman.machinery.built_in.quota.measure import counting
from steersman.machinery.codec.serializer import deep_copy, from_plain, to_plain
from steersman.machinery.errors.status import OPTIMISTIC_LOCK, StatusError, conflict, not_found
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.rest.context import Context
from steersman.rest.objects import Reading
from steersman.testing import ServerProcess

Plain = dict[str, Any]

QUOTAS = GroupResource("", "resourcequotas")
PLURALS = {
    "ConfigMap": "configmaps",
    "Pod": "pods",
    "Service": "services",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}
EVALUATORS: dict[GroupResource, Evaluator] = {
    GroupResource("", "pods"): PodEvaluator(),
    GroupResource("", "services"): ServiceEvaluator(),
    GroupResource("", "persistentvolumeclaims"): VolumeClaimEvaluator(),
}


class Quotas:
    """The quotas of the namespace "ns", with resource versions. `before_write` is called before each write."""

    def __init__(self, *quotas: core.ResourceQuota) -> None:
        self.stored = {each.metadata.name: each for each in quotas}
        self.version = 1
        self.writes = 0
        self.before_write: Callable[[], None] = lambda: None

    async def read_all(self, namespace: str, reading: Reading[Any]) -> list[Any]:
        return [reading.make(deep_copy(each)) for each in self.stored.values()] if namespace == "ns" else []

    async def try_wait_until_current(self) -> bool:
        return True  # nobody else writes

    def takes_long(self, namespace: str) -> bool:
        return False

    def change_count(self) -> int:
        return self.version

    def subscribe(self, changed: Callable[[], None]) -> None:
        pass

    def is_empty(self) -> bool:
        return not self.stored

    def put(self, quota: core.ResourceQuota) -> None:
        self.version += 1
        quota.metadata.resource_version = str(self.version)
        self.stored[quota.metadata.name] = quota

    def charge_elsewhere(self, name: str, **used: str) -> None:
        """Write a quota's usage as another server would."""
        quota = deep_copy(self.stored[name])
        quota.status.used.update(used)
        self.put(quota)

    async def update(self, ctx: Context, name: str, change: Callable[[Any], Any], *, subresource: str = "") -> None:
        assert (ctx.action.namespace, subresource) == ("ns", "status")
        await asyncio.sleep(0)
        self.before_write()
        if name not in self.stored:
            raise not_found(QUOTAS, name)
        current = self.stored[name]
        new = change(deep_copy(current))
        if new.metadata.resource_version != current.metadata.resource_version:
            raise conflict(QUOTAS, name, OPTIMISTIC_LOCK)
        self.writes += 1
        self.put(new)

    def used(self, name: str = "q") -> dict[str, str]:
        return self.stored[name].status.used


def quota(hard: dict[str, str], used: dict[str, str] | None = None, name: str = "q", **spec: Any) -> core.ResourceQuota:
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") if used is None else used}
    metadata = {"name": name, "namespace": "ns", "resourceVersion": "1"}
    return from_plain(core.ResourceQuota, {"metadata": metadata, "spec": {"hard": hard, **spec}, "status": status})


def plugin(quotas: Quotas, *limited: LimitedResource) -> ResourceQuota:
    return ResourceQuota(quotas, EVALUATORS, limited)  # type: ignore[arg-type]


def make_attributes(
    obj: Any, operation: Operation = CREATE, *, old: Any = None, subresource: str = "", **more: Any
) -> Attributes:
    kind = type(obj).__name__
    action = Action(operation.lower(), "", "v1", PLURALS[kind], subresource, "ns", "n")
    return Attributes(operation, UserInfo("alice"), action, GroupVersionKind("", "v1", kind), "n", obj, old, **more)


def make_config_map() -> core.ConfigMap:
    return from_plain(core.ConfigMap, {"metadata": {"name": "n"}})


def pod(cpu: str = "", **spec: Any) -> core.Pod:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    containers = [{"name": "c", "resources": resources}]
    return from_plain(
        core.Pod, {"metadata": {"name": "n", "resourceVersion": "1"}, "spec": {"containers": containers, **spec}}
    )


def service(type: str) -> core.Service:
    metadata = {"name": "n", "resourceVersion": "1"}
    return from_plain(core.Service, {"metadata": metadata, "spec": {"type": type, "ports": [{"port": 1}]}})


async def refusal(work: Any) -> str:
    """Return the text of a 403 after the object's name; "" if there is none."""
    try:
        await work
    except StatusError as error:
        if (error.code, error.reason) != (403, "Forbidden"):
            raise
        return error.message.split(" is forbidden: ")[1]
    return ""


# Charges and refusals


async def test_what_is_made_is_charged_until_nothing_is_left() -> None:
    quotas = Quotas(quota({"configmaps": "2", "count/configmaps": "9", "secrets": "1"}))
    admit = plugin(quotas).validate
    for _ in range(2):
        await admit(make_attributes(make_config_map()))
    assert quotas.used() == {"configmaps": "2", "count/configmaps": "2", "secrets": "0"}
    message = "exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2"
    assert await refusal(admit(make_attributes(make_config_map()))) == message
    assert quotas.writes == 2


async def test_dry_runs_are_judged_but_not_charged() -> None:
    quotas = Quotas(quota({"configmaps": "1"}))
    admit = plugin(quotas).validate
    await admit(make_attributes(make_config_map(), dry_run=True))
    assert quotas.writes == 0
    await admit(make_attributes(make_config_map()))
    assert (await refusal(admit(make_attributes(make_config_map(), dry_run=True)))).startswith("exceeded quota: q")


async def test_a_quota_without_usage_refuses() -> None:
    admit = plugin(Quotas(quota({"pods": "1", "requests.cpu": "1", "services": "1"}, {"services": "0"}))).validate
    assert (
        await refusal(admit(make_attributes(pod("1")))) == "status unknown for quota: q, resources: pods,requests.cpu"
    )
    assert await refusal(admit(make_attributes(pod()))) == "failed quota: q: must specify requests.cpu for: c"
    assert await refusal(admit(make_attributes(service("ClusterIP")))) == ""
    assert await refusal(admit(make_attributes(make_config_map()))) == ""


async def test_an_update_is_charged_for_what_it_adds_and_gives_nothing_back() -> None:
    quotas = Quotas(quota({"services": "1", "services.nodeports": "1"}, {"services": "1", "services.nodeports": "0"}))
    admit = plugin(quotas).validate
    await admit(make_attributes(service("NodePort"), UPDATE, old=service("ClusterIP")))
    assert quotas.used() == {"services": "1", "services.nodeports": "1"}
    await admit(make_attributes(service("ClusterIP"), UPDATE, old=service("NodePort")))
    assert quotas.used() == {"services": "1", "services.nodeports": "1"}
    assert await refusal(admit(make_attributes(service("NodePort"), UPDATE, old=service("ClusterIP")))) == (
        "exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1"
    )


async def test_who_comes_into_a_scope_is_charged_in_full() -> None:
    ending, going_on = (
        quota({"pods": "1"}, name="e", scopes=["Terminating"]),
        quota({"pods": "1"}, name="n", scopes=["NotTerminating"]),
    )
    quotas = Quotas(ending, going_on)
    await plugin(quotas).validate(make_attributes(pod("1", activeDeadlineSeconds=1), UPDATE, old=pod("1")))
    assert (quotas.used("e"), quotas.used("n")) == ({"pods": "1"}, {"pods": "0"})


async def test_a_status_is_recorded_even_beyond_the_quota() -> None:
    def claim(allocated: str) -> core.PersistentVolumeClaim:
        plain = {
            "metadata": {"name": "n", "resourceVersion": "1"},
            "spec": {"resources": {"requests": {"storage": "1Gi"}}},
            "status": {"allocatedResources": {"storage": allocated}},
        }
        return from_plain(core.PersistentVolumeClaim, plain)

    quotas = Quotas(quota({"requests.storage": "1Gi"}, {"requests.storage": "1Gi"}))
    await plugin(quotas).validate(make_attributes(claim("3Gi"), UPDATE, old=claim("1Gi"), subresource="status"))
    assert quotas.used() == {"requests.storage": "3Gi"}


async def test_events_and_reviews_are_not_counted() -> None:
    admit = Chain((plugin(Quotas(quota({"count/events": "0"}))),)).validate
    action = Action("create", "", "v1", "events", namespace="ns", name="n")
    event = Attributes(CREATE, UserInfo("alice"), action, GroupVersionKind("", "v1", "Event"), "n", core.Event())
    assert await refusal(admit(event)) == ""


async def test_a_scope_that_cannot_be_read_is_an_error() -> None:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a b"]}]}
    with pytest.raises(StatusError) as caught:
        await plugin(Quotas(quota({"pods": "1"}, scopeSelector=selector))).validate(make_attributes(pod()))
    assert caught.value.code == 500
    assert caught.value.message.startswith(
        "error matching scopes of quota q, err: error on matching scope {PriorityClass In [a b]}: failed to parse and "
        'convert selector: values[0][PriorityClass]: Invalid value: "a b": '
    )


# Concurrent writes


async def test_writes_that_wait_together_are_charged_in_one_update() -> None:
    quotas = Quotas(quota({"configmaps": "5"}))
    admit = plugin(quotas).validate
    results = await asyncio.gather(*(refusal(admit(make_attributes(make_config_map()))) for _ in range(8)))
    assert results.count("") == 5
    assert quotas.used() == {"configmaps": "5"}
    assert quotas.writes == 1


async def test_a_quota_that_another_writer_changes_is_judged_again() -> None:
    quotas = Quotas(quota({"configmaps": "2"}), quota({"configmaps": "9"}, name="other"))
    work = plugin(quotas)

    def interfere() -> None:
        quotas.before_write = lambda: None
        quotas.charge_elsewhere("q", configmaps="1")

    quotas.before_write = interfere
    results = await asyncio.gather(*(refusal(work.validate(make_attributes(make_config_map()))) for _ in range(2)))
    assert sorted(results) == [
        "",
        "exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2",
    ]
    assert quotas.used() == {"configmaps": "2"}


async def test_a_write_that_never_fits_in_between_ends_with_the_conflict() -> None:
    quotas = Quotas(quota({"configmaps": "2"}))
    quotas.before_write = lambda: quotas.charge_elsewhere("q")
    with pytest.raises(StatusError) as caught:
        await plugin(quotas).validate(make_attributes(make_config_map()))
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


async def test_a_quota_that_is_deleted_meanwhile_limits_nothing() -> None:
    quotas = Quotas(quota({"configmaps": "2"}))

    def remove() -> None:
        quotas.stored.clear()
        quotas.version += 1

    quotas.before_write = remove
    assert await refusal(plugin(quotas).validate(make_attributes(make_config_map()))) == ""


async def test_a_request_that_is_given_up_takes_no_other_with_it() -> None:
    quotas = Quotas(quota({"configmaps": "5"}))
    admit = plugin(quotas).validate
    given_up, other = (asyncio.ensure_future(admit(make_attributes(make_config_map()))) for _ in range(2))
    await asyncio.sleep(0)
    given_up.cancel()
    await other
    assert given_up.cancelled()
    assert quotas.used() == {"configmaps": "2"}


async def test_what_cannot_be_measured_is_told_to_who_waits() -> None:
    class Broken(Evaluator):
        async def usage(self, obj: Any, namespace: str) -> Any:
            raise RuntimeError("broken")

    configmaps = GroupResource("", "configmaps")
    quotas = Quotas(quota({"count/configmaps": "1", "services": "1"}))
    work = ResourceQuota(quotas, {configmaps: Broken(counting(configmaps)), **EVALUATORS})  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="broken"):
        await work.validate(make_attributes(make_config_map()))
    assert await refusal(work.validate(make_attributes(service("ClusterIP")))) == ""


# By requests to a server


PLACES = 7
CLIENTS = 8
TRIES = 5


def test_clients_that_create_at_the_same_time_never_get_more_than_there_is(server: ServerProcess) -> None:
    path = "/api/v1/namespaces/crowded"
    hard = {"configmaps": str(PLACES), "count/configmaps": "100"}
    with server.client() as client:
        assert client.json("POST", "/api/v1/namespaces", {"metadata": {"name": "crowded"}})[0] == 201
        wanted: Plain = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
        assert client.json("POST", f"{path}/resourcequotas", wanted)[0] == 201
        wanted["status"] = {"hard": hard, "used": dict.fromkeys(hard, "0")}
        assert client.json("PUT", f"{path}/resourcequotas/q/status", wanted)[0] == 200
        before = len(client.json("GET", f"{path}/configmaps")[1]["items"])

    def create(number: int) -> list[tuple[int, str]]:
        with server.client(timeout=60.0) as client:
            answers = [
                client.request("POST", f"{path}/configmaps", {"metadata": {"name": f"c-{number}-{each}"}})
                for each in range(TRIES)
            ]
        return [(status, "" if status == 201 else json.loads(body)["message"]) for status, body in answers]

    with ThreadPoolExecutor(CLIENTS) as threads:
        answers = [answer for some in threads.map(create, range(CLIENTS)) for answer in some]
    assert sorted({status for status, _ in answers}) == [201, 403]
    assert [status for status, _ in answers].count(201) == PLACES
    told = f"exceeded quota: q, requested: configmaps=1, used: configmaps={PLACES}, limited: configmaps={PLACES}"
    assert all(message.endswith(told) for _, message in answers if message)
    with server.client() as client:
        assert len(client.json("GET", f"{path}/configmaps")[1]["items"]) == before + PLACES
        used = {"configmaps": str(PLACES), "count/configmaps": str(PLACES)}
        stored = client.json("GET", f"{path}/resourcequotas/q")[1]
    assert stored["status"]["used"] == used
    owners = [(each["manager"], each.get("subresource")) for each in stored["metadata"]["managedFields"]]
    assert ("kube-apiserver", "status") in owners


def test_pods_get_the_defaults_of_a_limit_range_and_are_charged_for_them(server: ServerProcess) -> None:
    path = "/api/v1/namespaces/defaulted"
    with server.client() as client:
        assert client.json("POST", "/api/v1/namespaces", {"metadata": {"name": "defaulted"}})[0] == 201
        limits = [{"type": "Container", "default": {"cpu": "500m"}}]
        assert (
            client.json("POST", f"{path}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})[0]
            == 201
        )
        status = {"hard": {"limits.cpu": "1"}, "used": {"limits.cpu": "0"}}
        wanted: Plain = {"metadata": {"name": "q"}, "spec": {"hard": status["hard"]}, "status": status}
        assert client.json("POST", f"{path}/resourcequotas", wanted)[0] == 201
        assert client.json("PUT", f"{path}/resourcequotas/q/status", wanted)[0] == 200
        containers = [{"name": "c", "image": "i"}]
        codes = [
            client.json("POST", f"{path}/pods", {"metadata": {"name": name}, "spec": {"containers": containers}})
            for name in ("a", "b", "c")
        ]
    assert [code for code, _ in codes] == [201, 201, 403]
    assert codes[2][1]["message"] == (
        'pods "c" is forbidden: exceeded quota: q, requested: limits.cpu=500m, used: limits.cpu=1, '
        "limited: limits.cpu=1"
    )


# Resources that require a quota

CPU_IS_LIMITED = LimitedResource(resource="pods", match_contains=["requests."])


def priority(*values: str) -> core.ScopedResourceSelectorRequirement:
    return core.ScopedResourceSelectorRequirement(scope_name="PriorityClass", operator="In", values=list(values))


async def test_what_is_limited_is_not_to_be_had_without_a_quota() -> None:
    admit = plugin(Quotas(), CPU_IS_LIMITED).validate
    assert await refusal(admit(make_attributes(pod("1")))) == "insufficient quota to consume: requests.cpu"
    await admit(make_attributes(pod()))
    await admit(make_attributes(make_config_map()))


async def test_a_quota_that_does_not_name_it_does_not_cover_it() -> None:
    limited = LimitedResource(resource="pods", match_contains=["cpu", "pods"])
    message = "insufficient quota to consume: count/pods,cpu,requests.cpu"
    quotas = Quotas(quota({"pods": "5"}))
    assert await refusal(plugin(quotas, limited).validate(make_attributes(pod("1")))) == message
    assert quotas.writes == 0
    everything = {"pods": "5", "cpu": "9", "requests.cpu": "9", "count/pods": "2"}
    covering = Quotas(quota(everything), quota({"configmaps": "1"}, name="other"))
    await plugin(covering, limited).validate(make_attributes(pod("1")))
    assert covering.used() == {"pods": "1", "cpu": "1", "requests.cpu": "1", "count/pods": "1"}


async def test_an_update_that_uses_no_more_needs_no_quota() -> None:
    admit = plugin(Quotas(), LimitedResource(resource="services", match_contains=["loadbalancers"])).validate
    balanced, plain = service("LoadBalancer"), service("ClusterIP")
    message = "insufficient quota to consume: services.loadbalancers"
    assert await refusal(admit(make_attributes(balanced))) == message
    assert await refusal(admit(make_attributes(balanced, UPDATE, old=plain))) == message
    await admit(make_attributes(balanced, UPDATE, old=balanced))
    await admit(make_attributes(plain))


async def test_objects_in_a_limited_scope_need_a_quota_with_that_scope() -> None:
    limited = LimitedResource(resource="pods", match_scopes=[priority("gold", "silver")])
    gold, iron = pod(priorityClassName="gold"), pod(priorityClassName="iron")
    admit = plugin(Quotas(quota({"pods": "5"})), limited).validate
    with pytest.raises(StatusError) as caught:
        await admit(make_attributes(gold))
    assert (caught.value.code, caught.value.message) == (
        500,
        "insufficient quota to match these scopes: [{PriorityClass In [gold silver]}]",
    )
    await admit(make_attributes(iron))
    scoped = quota({"pods": "5"}, scopeSelector={"matchExpressions": [to_plain(priority("gold"))]})
    await plugin(Quotas(scoped), limited).validate(make_attributes(gold))


async def test_a_scope_that_cannot_be_read_limits_nothing() -> None:
    odd = core.ScopedResourceSelectorRequirement(scope_name="PriorityClass", operator="Odd")
    limited = LimitedResource(resource="pods", match_contains=["cpu"], match_scopes=[odd])
    await plugin(Quotas(), limited).validate(make_attributes(pod("1")))
