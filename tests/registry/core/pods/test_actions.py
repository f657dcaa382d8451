"""Binding, eviction, and requests to a pod's node, on real stores in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from threading import get_ident
from typing import Any

import pytest

from steersman.api.core.v1 import Binding, ObjectReference, Pod, PodCondition
from steersman.api.meta.v1 import LabelSelector, LabelSelectorRequirement, ObjectMeta
from steersman.api.policy.v1 import Eviction, PodDisruptionBudget, PodDisruptionBudgetSpec
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict
from steersman.authorization.union import UnionRuleResolver
from steersman.controlplane.objects import StoreObjects
from steersman.endpoints.request import Request
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.machinery.selectors.labels import Selector, from_label_selector
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer
from steersman.net.message import Request as HttpRequest
from steersman.registry.core.nodes import NODES
from steersman.registry.core.pods import eviction as pod_eviction
from steersman.registry.core.pods.binding import bind_pod, create_binding
from steersman.registry.core.pods.eviction import evict_pod
from steersman.registry.core.pods.kubelet import pod_exec, pod_logs, pod_port_forward, proxy_to_pod
from steersman.registry.core.pods.pods import PODS
from steersman.registry.policy.poddisruptionbudgets import POD_DISRUPTION_BUDGETS
from steersman.registry.services import Services
from steersman.rest.bound import bind
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.storage.memory import MemoryStorage
from steersman.store.store import Store
from tests.registry.podspecs import defaulted_pod

CTX = Context(action=Action("create", namespace="ns"))


class OnlyCreate:
    """An authorizer that allows only alice to create."""

    def authorize(self, attributes: Attributes) -> Verdict:
        allowed = attributes.user.name == "alice"
        return Verdict(Decision.ALLOW if allowed else Decision.NO_OPINION, "no way")


def request(query: str = "") -> Request:
    return Request(HttpRequest("GET", "/", query, Headers.from_pairs([]), EMPTY_BODY, Peer()))


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    storage = MemoryStorage()
    stores: dict[tuple[str, str], Store[Any]] = {}
    made = Services(
        objects=lambda group, plural: StoreObjects(stores[group, plural]),
        storage_of=lambda resource: storage,
        authorizer=OnlyCreate(),
        rule_resolver=UnionRuleResolver(()),
        service_cluster_ip_ranges=(),
        service_node_ports=range(30000, 32768),
        allow_privileged=True,
        service_account_issuer="",
        api_audiences=(),
        sign_token=lambda claims: "",
        event_ttl=3600,
        authenticate_token=lambda token, audiences: None,
    )
    resources: tuple[Resource[Any], ...] = (PODS, NODES, POD_DISRUPTION_BUDGETS)
    for resource in resources:
        stores[resource.group, resource.plural] = store = Store(bind(resource, made), storage)
        await store.start()
    yield made
    for store in stores.values():
        await store.stop()


async def create(services: Services, name: str = "a", **spec: Any) -> Pod:
    pod: Pod = await services.objects("", "pods").create(CTX, defaulted_pod(name, **spec))
    return pod


async def refusal(action: Any) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await action
    return caught.value


def binding(name: str = "a", node: str = "n", **metadata: Any) -> Binding:
    return Binding(metadata=ObjectMeta(name=name, **metadata), target=ObjectReference(kind="Node", name=node))


async def test_a_bound_pod_has_a_node_and_what_the_binding_brings(services: Services) -> None:
    await create(services)
    await bind_pod(services, CTX, "a", binding(labels={"zone": "z"}, annotations={"x": "y"}))
    pod: Pod = await services.objects("", "pods").get(CTX, "a")
    assert (pod.spec.node_name, pod.metadata.generation) == ("n", 1)
    assert (pod.metadata.labels, pod.metadata.annotations) == ({"zone": "z"}, {"x": "y"})
    assert [(c.type, c.status) for c in pod.status.conditions] == [("PodScheduled", "True")]
    error = await refusal(bind_pod(services, CTX, "a", binding(node="m")))
    assert (error.code, error.message) == (
        409,
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"',
    )


async def test_refused_bindings(services: Services) -> None:
    pod = await create(services, schedulingGates=[{"name": "a.b/c"}])
    error = await refusal(bind_pod(services, CTX, "a", binding()))
    assert error.message.endswith("pod a has non-empty .spec.schedulingGates")
    error = await refusal(bind_pod(services, CTX, "a", binding("b")))
    assert (error.code, error.message) == (400, "name in URL does not match name in Binding object")
    error = await refusal(bind_pod(services, CTX, "a", binding(node="")))
    assert (error.code, error.reason, error.message) == (500, "", "target.name: Required value")
    error = await refusal(bind_pod(services, CTX, "a", binding(uid="u")))
    assert error.message == (
        'Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, Key: /registry/pods/ns/a, '
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: u, "
        f"UID in object meta: {pod.metadata.uid}"
    )
    error = await refusal(create_binding(services, CTX, binding("")))
    assert (error.code, error.message) == (400, "Name parameter required.")
    assert (await refusal(create_binding(services, CTX, binding("none")))).code == 404


def eviction(name: str = "a") -> Eviction:
    return Eviction(metadata=ObjectMeta(name=name))


async def guard(services: Services, name: str = "p", **status: int) -> None:
    """Create a budget for pods labelled app=g, with this status."""
    budgets = services.objects("policy", "poddisruptionbudgets")
    spec = PodDisruptionBudgetSpec(min_available=1, selector=LabelSelector(match_labels={"app": "g"}))
    await budgets.create(CTX, PodDisruptionBudget(metadata=ObjectMeta(name=name, namespace="ns"), spec=spec))

    def fill(budget: PodDisruptionBudget) -> PodDisruptionBudget:
        for field, value in status.items():
            setattr(budget.status, field, value)
        return budget

    await budgets.update(CTX, name, fill, subresource="status")


async def running(services: Services, name: str = "a", *, ready: bool = True) -> None:
    """Create a running pod of the budget on a node."""
    await create(services, name, nodeName="n", metadata={"labels": {"app": "g"}})

    def run(pod: Pod) -> Pod:
        pod.status.phase = "Running"
        if ready:
            pod.status.conditions = [PodCondition(type="Ready", status="True")]
        return pod

    await services.objects("", "pods").update(CTX, name, run, subresource="status")


async def test_a_pod_without_a_budget_is_deleted_with_its_grace(services: Services) -> None:
    await create(services, "free")
    await evict_pod(services, CTX, "free", eviction("free"))
    assert (await services.objects("", "pods").get_cached("ns", "free")) is None
    await create(services, nodeName="n")
    await evict_pod(services, CTX, "a", eviction())
    pod: Pod = await services.objects("", "pods").get(CTX, "a")
    assert pod.metadata.deletion_grace_period_seconds == 30
    assert [(c.type, c.reason) for c in pod.status.conditions] == [("DisruptionTarget", "EvictionByEvictionAPI")]


async def test_an_eviction_is_counted(services: Services) -> None:
    await running(services)
    await guard(services, observed_generation=1, disruptions_allowed=1, current_healthy=2, desired_healthy=1)
    await evict_pod(services, Context(action=Action(namespace="ns"), dry_run=True), "a", eviction())
    budgets = services.objects("policy", "poddisruptionbudgets")
    assert (await budgets.get(CTX, "p")).status.disruptions_allowed == 1
    await evict_pod(services, CTX, "a", eviction())
    status = (await budgets.get(CTX, "p")).status
    assert (status.disruptions_allowed, list(status.disrupted_pods)) == (0, ["a"])
    assert [(c.type, c.status, c.reason) for c in status.conditions] == [
        ("DisruptionAllowed", "False", "InsufficientPods")
    ]


@pytest.mark.parametrize(
    ("status", "retry_after", "cause"),
    [
        ({}, 10, "The disruption budget p is still being processed by the server."),
        (
            {"observed_generation": 1, "current_healthy": 1, "desired_healthy": 1},
            0,
            "The disruption budget p needs 1 healthy pods and has 1 currently",
        ),
        (
            {"observed_generation": 1, "current_healthy": 2, "desired_healthy": 1},
            0,
            "The disruption budget p does not allow evicting pods currently",
        ),
    ],
)
async def test_refused_evictions(services: Services, status: dict[str, int], retry_after: int, cause: str) -> None:
    await running(services)
    await guard(services, "p", **status)
    error = await refusal(evict_pod(services, CTX, "a", eviction()))
    assert (error.code, error.retry_after) == (429, retry_after)
    assert error.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert [(each.reason, each.message) for each in error.causes] == [("DisruptionBudget", cause)]


async def test_an_unready_pod_may_go_while_enough_are_healthy(services: Services) -> None:
    await running(services, ready=False)
    await guard(services, observed_generation=1, current_healthy=1, desired_healthy=1)
    await evict_pod(services, CTX, "a", eviction())
    pod: Pod = await services.objects("", "pods").get(CTX, "a")
    assert pod.metadata.deletion_timestamp is not None


async def test_two_budgets_are_too_many(services: Services) -> None:
    await running(services)
    await guard(services, "p")
    await guard(services, "q")
    error = await refusal(evict_pod(services, CTX, "a", eviction()))
    assert (error.code, error.reason) == (500, "")


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("", 400, "a container name must be specified for pod a, choose one of: [i c d]"),
        ("container=none", 400, "container none is not valid for pod a"),
        ("tailLines=abc", 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
        (
            "tailLines=-1",
            422,
            'PodLogOptions "a" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
        ),
        (
            "sinceSeconds=5&sinceTime=2020-01-01T00:00:00Z",
            422,
            'PodLogOptions "a" is invalid: []: Forbidden: '
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ("stream=Odd", 422, 'PodLogOptions "a" is invalid: stream: Forbidden: may not be specified'),
    ],
)
async def test_refused_logs(services: Services, query: str, code: int, message: str) -> None:
    containers = [{"name": "c", "image": "x"}, {"name": "d", "image": "x"}]
    await create(services, containers=containers, initContainers=[{"name": "i", "image": "x"}])
    error = await refusal(pod_logs(services, CTX, "a", request(query)))
    assert (error.code, error.message) == (code, message)


async def test_a_pod_without_a_node_has_no_logs_and_no_streams(services: Services) -> None:
    await create(services)
    assert (await pod_logs(services, CTX, "a", request())).status == 204
    for stream in (pod_exec, pod_port_forward):
        error = await refusal(stream(services, CTX, "a", request("container=c")))
        assert (error.code, error.message) == (400, "pod a does not have a host assigned")
    error = await refusal(proxy_to_pod(services, CTX, "a:80", request()))
    assert (error.code, error.message) == (400, "address not allowed")


async def test_a_bound_pod_needs_its_node(services: Services) -> None:
    await create(services, nodeName="n")
    error = await refusal(pod_logs(services, CTX, "a", request()))
    assert (error.code, error.message) == (404, 'pods "n" not found')


async def test_streams_over_get_need_the_right_to_create(services: Services) -> None:
    await create(services)
    ctx = Context(action=Action("get", "", "v1", "pods", "exec", "ns"))
    error = await refusal(pod_exec(services, ctx, "a", request()))
    assert (error.code, error.message) == (403, 'pods "a" is forbidden: no way')


def _large(prefix: str) -> LabelSelector:
    """Return a selector of many terms that matches pods of the budget."""
    terms = [LabelSelectorRequirement(key=f"{prefix}{number}", operator="DoesNotExist") for number in range(3_000)]
    return LabelSelector(match_labels={"app": "g"}, match_expressions=terms)


class TestManyBudgets:
    """Many budgets: an eviction stays cheap, and other requests are not delayed."""

    async def budget(self, services: Services, name: str, selector: LabelSelector) -> None:
        budgets = services.objects("policy", "poddisruptionbudgets")
        spec = PodDisruptionBudgetSpec(selector=selector)
        await budgets.create(CTX, PodDisruptionBudget(metadata=ObjectMeta(name=name, namespace="ns"), spec=spec))

    @pytest.fixture
    def compiled(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """The threads in which selectors were compiled."""
        found: list[int] = []

        def compiled(selector: LabelSelector | None) -> Selector:
            found.append(get_ident())
            return from_label_selector(selector)

        monkeypatch.setattr(pod_eviction, "from_label_selector", compiled)
        return found

    async def test_selectors_are_compiled_once(self, services: Services, compiled: list[int]) -> None:
        for number in range(20):
            await self.budget(services, f"p{number:02}", LabelSelector(match_labels={"app": str(number)}))
        for name in ("a", "b", "c"):
            await running(services, name)
            await evict_pod(services, CTX, name, eviction(name))
        assert len(compiled) == 20
        await services.objects("policy", "poddisruptionbudgets").delete(CTX, "p07")
        await self.budget(services, "p07", LabelSelector(match_labels={"app": "g"}))
        await running(services, "d")
        assert (await refusal(evict_pod(services, CTX, "d", eviction("d")))).code == 429
        assert len(compiled) == 21

    async def test_large_ones_are_compiled_beside_the_loop(self, services: Services, compiled: list[int]) -> None:
        await self.budget(services, "large", _large("x"))
        await running(services)
        assert (await refusal(evict_pod(services, CTX, "a", eviction()))).code == 429
        assert compiled
        assert get_ident() not in compiled

    async def test_the_second_that_takes_the_pod_is_the_last_looked_at(
        self, services: Services, compiled: list[int]
    ) -> None:
        for number in range(20):
            await self.budget(services, f"p{number:02}", LabelSelector(match_labels={"app": "g"}))
        await running(services)
        assert (await refusal(evict_pod(services, CTX, "a", eviction()))).code == 500
        assert len(compiled) == 2
