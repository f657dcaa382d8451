"""Tests of validating webhooks: called webhooks, conditions, and effects of failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.admission.interface import MAX_WARNINGS, Attributes
from steersman.admission_plugins.matching import expressions
from steersman.admission_plugins.webhook import clients
from steersman.admission_plugins.webhook import validating as plugin
from steersman.authentication.user import UserInfo
from steersman.cel.regular import compile_pattern
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.testing import Client, Environment
from steersman.webhooks.client_config import endpoint_of
from steersman.webhooks.kubeconfig import Endpoint
from tests.admission_plugins.policy.policies import enforce, validating
from tests.admission_plugins.webhook.admission_hook import (
    CONFIGURATIONS,
    MUTATING,
    VALIDATING,
    AdmissionHook,
    allow,
    configure,
    deny,
)
from tests.https_hook import http_response
from tests.noted import noted

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CONFIGURATION = f"{CONFIGURATIONS.format(VALIDATING)}/hooks"


def config_map(name: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels or {}}}


async def test_all_are_asked_at_the_same_time(client: Client, hook: AdmissionHook) -> None:
    await configure(client, VALIDATING, *(hook.webhook(f"/{each}", "configmaps") for each in "abc"))
    hook.held = asyncio.Event()
    writing = asyncio.ensure_future(client.post(CONFIG_MAPS, config_map("x")))
    await hook.asked(3)
    assert (await client.get(f"{CONFIG_MAPS}/x")).status == 404
    hook.held.set()
    assert (await writing).status == 201


async def test_a_configuration_counts_once_it_is_acknowledged_and_until_it_is_gone(
    client: Client, hook: AdmissionHook
) -> None:
    hook.answers["/deny"] = deny
    await configure(client, VALIDATING, hook.webhook("/deny", "configmaps"))
    assert (await client.post(CONFIG_MAPS, config_map("x"))).status == 400
    await client.delete(CONFIGURATION)
    assert (await client.post(CONFIG_MAPS, config_map("x"))).status == 201


async def test_configurations_cannot_lock_their_administrator_out(client: Client, hook: AdmissionHook) -> None:
    hook.answers["/deny"] = deny
    await configure(client, VALIDATING, hook.webhook("/deny", "*/*"))
    assert (await client.post(CONFIG_MAPS, config_map("x"))).status == 400
    await configure(client, MUTATING, hook.webhook("/more", "configmaps"), name="more")
    assert (await client.delete(CONFIGURATION)).status == 200


async def test_connections_are_kept(client: Client, hook: AdmissionHook) -> None:
    await configure(client, VALIDATING, hook.webhook("/a", "configmaps"))
    for number in range(20):
        assert (await client.post(CONFIG_MAPS, config_map(f"x{number}"))).status == 201
    assert hook.connections == 1


async def test_a_changed_configuration_is_asked_where_it_is_now(client: Client, hook: AdmissionHook) -> None:
    await configure(client, VALIDATING, hook.webhook("/a", "configmaps"))
    await client.post(CONFIG_MAPS, config_map("x"))
    change = {"webhooks": [hook.webhook("/b", "configmaps")]}
    assert (await client.patch(CONFIGURATION, change)).status == 200
    await client.post(CONFIG_MAPS, config_map("y"))
    assert hook.paths == ["/a", "/b"]


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda request: {"allowed": True, "uid": "other"}, "received invalid webhook response: expected response.uid"),
        (lambda request: {"allowed": True, "patchType": "x"}, "received invalid webhook response: validating webhook"),
        (lambda request: http_response(500, b"oops"), 'failed to call webhook: an error on the server ("oops") has'),
        (lambda request: http_response(302, b""), "failed to call webhook: "),
        (lambda request: http_response(200, b"[" * 100_000), "failed to call webhook: "),
        (lambda request: http_response(200, b" " * (4 << 20)), "failed to call webhook: the answer is longer than"),
        (lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", "failed to call webhook: "),
        (lambda request: b"garbage\r\n\r\n", "failed to call webhook: Post "),
    ],
)
async def test_a_webhook_that_fails(client: Client, hook: AdmissionHook, policy: str, answer: Any, told: str) -> None:
    hook.answers["/w"] = answer
    await configure(client, VALIDATING, hook.webhook("/w", "configmaps", failurePolicy=policy, timeoutSeconds=1))
    made = await client.post(CONFIG_MAPS, config_map("x"))
    if policy == "Ignore":
        assert made.status == 201
        return
    assert made.status == 500
    start = f'Internal error occurred: failed calling webhook "w.example.com": {told}'
    assert made.json()["message"].startswith(start), made.json()["message"]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("policy", "how"), [("Fail", "closed"), ("Ignore", "open")])
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (http_response(500, b"canary"), "its response has the status code 500"),
        (http_response(200, b"[canary"), "cannot be decoded"),
    ],
)
async def test_a_webhook_that_fails_is_logged_once_without_what_it_has_answered(
    own_client: Client,
    hook: AdmissionHook,
    caplog: pytest.LogCaptureFixture,
    policy: str,
    how: str,
    answer: bytes,
    told: str,
) -> None:
    hook.answers["/w"] = lambda request: answer
    await configure(own_client, VALIDATING, hook.webhook("/w", "configmaps", failurePolicy=policy))
    for number in range(5):
        await own_client.post(CONFIG_MAPS, config_map(f"x{number}"))
    (line,) = [each for each in caplog.records if each.name.endswith("webhook.calling")]
    assert line.levelname == "WARNING"
    assert line.getMessage().startswith(f"Failed calling webhook, failing {how} w.example.com: ")
    assert line.getMessage().endswith(told)
    assert "canary" not in caplog.text


async def test_others_do_not_wait_for_a_webhook_that_hangs(client: Client, hook: AdmissionHook) -> None:
    webhook = hook.webhook("/w", "configmaps", timeoutSeconds=1, objectSelector={"matchLabels": {"slow": "yes"}})
    await configure(client, VALIDATING, webhook)
    hook.held = asyncio.Event()
    slow = asyncio.ensure_future(client.post(CONFIG_MAPS, config_map("x", {"slow": "yes"})))
    await hook.asked(1)
    assert (await client.post(CONFIG_MAPS, config_map("y"))).status == 201
    text = f'failed to call webhook: Post "{hook.root}/w?timeout=1s": context deadline exceeded'
    assert (await slow).json()["message"] == f'Internal error occurred: failed calling webhook "w.example.com": {text}'
    hook.held.set()


async def test_a_dry_run_is_not_told_to_webhooks_that_do_more_than_judge(client: Client, hook: AdmissionHook) -> None:
    await configure(client, VALIDATING, hook.webhook("/w", "configmaps", sideEffects="NoneOnDryRun"))
    assert (await client.post(f"{CONFIG_MAPS}?dryRun=All", config_map("x"))).status == 201
    assert hook.of("/w")[0]["dryRun"] is True
    assert hook.of("/w")[0]["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}


async def test_patches_are_updates_to_webhooks(client: Client, hook: AdmissionHook) -> None:
    await client.post(CONFIG_MAPS, config_map("x"))
    await configure(client, VALIDATING, hook.webhook("/w", "configmaps"))
    path = f"{CONFIG_MAPS}/x?fieldManager=me"
    assert (await client.patch(path, {"data": {"a": "1"}})).status == 200
    (request,) = hook.of("/w")
    assert (request["operation"], request["object"]["data"]) == ("UPDATE", {"a": "1"})
    assert "data" not in request["oldObject"]
    assert request["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}


async def test_each_object_of_a_deleted_collection_is_asked_about(client: Client, hook: AdmissionHook) -> None:
    for name in "abc":
        await client.post(CONFIG_MAPS, config_map(name, {"mine": "yes"}))
    await configure(client, VALIDATING, hook.webhook("/w", "configmaps"))
    assert (await client.delete(f"{CONFIG_MAPS}?labelSelector=mine")).status == 200
    assert {request["oldObject"]["metadata"]["name"] for request in hook.of("/w")} == {"a", "b", "c"}
    assert all("name" not in request for request in hook.of("/w"))


async def test_what_several_ask_the_authorizer_about_one_request_is_asked_once(
    client: Client, hook: AdmissionHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    ask = expressions.question_of
    monkeypatch.setattr(expressions, "question_of", noted(ask, lambda check, user: asked.append(check)))
    expression = "authorizer.group('').resource('pods').namespace('default').check('break').allowed()"
    conditions = [{"name": "may-break", "expression": expression}]
    webhook = hook.webhook("/w", "configmaps", matchConditions=conditions)
    for name in ("a", "b"):
        await configure(client, VALIDATING, webhook, name=name)
    await enforce(client, "p", validating(expression, matchConditions=conditions))
    for count in (1, 2):
        answer = await client.post(CONFIG_MAPS, config_map(f"x{count}"))
        assert answer.status == 201, answer.body
        assert len(asked) == count


@pytest.mark.parametrize("which", [VALIDATING, MUTATING])
async def test_a_collection_is_deleted_up_to_an_object_that_a_webhook_keeps(
    client: Client, hook: AdmissionHook, which: str
) -> None:
    for name in "abcde":
        await client.post(CONFIG_MAPS, config_map(name, {"mine": "yes"}))
    hook.answers["/w"] = lambda request: {"allowed": request["oldObject"]["metadata"]["name"] != "c"}
    await configure(client, which, hook.webhook("/w", "configmaps"))
    assert (await client.delete(f"{CONFIG_MAPS}?labelSelector=mine")).status == 400
    assert [request["oldObject"]["metadata"]["name"] for request in hook.of("/w")] == ["a", "b", "c"]
    left = (await client.get(f"{CONFIG_MAPS}?labelSelector=mine")).json()["items"]
    assert [each["metadata"]["name"] for each in left] == ["c", "d", "e"]


async def test_match_conditions_may_ask_the_authorizer(client: Client, hook: AdmissionHook) -> None:
    hook.answers["/w"] = deny
    expression = "!authorizer.group('').resource('pods').namespace('default').check('break').allowed()"
    conditions = [{"name": "may-not-break", "expression": expression}]
    await configure(client, VALIDATING, hook.webhook("/w", "configmaps", matchConditions=conditions))
    assert (await client.post(CONFIG_MAPS, config_map("x"))).status == 201  # it may do everything
    assert hook.paths == []


async def test_match_conditions_may_have_regular_expressions(client: Client, hook: AdmissionHook) -> None:
    hook.answers["/w"] = deny
    compile_pattern.cache_clear()
    conditions = [{"name": "guarded", "expression": "object.metadata.name.matches('^guarded-[0-9]+$')"}]
    await configure(client, VALIDATING, hook.webhook("/w", "configmaps", matchConditions=conditions))
    assert (await client.post(CONFIG_MAPS, config_map("x"))).status == 201
    assert (await client.post(CONFIG_MAPS, config_map("guarded-1"))).status == 400
    assert len(hook.of("/w")) == 1


async def test_a_webhook_may_be_a_service(client: Client, hook: AdmissionHook) -> None:
    """Its certificate has the name of the Service, whatever its address is."""
    service = {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    assert (await client.post("/api/v1/namespaces/default/services", service)).status == 201
    config = {"service": {"namespace": "default", "name": "hook", "path": "/w", "port": hook.port}}
    webhook = hook.webhook("/w", "configmaps") | {"clientConfig": {**config, "caBundle": hook.ca_bundle}}
    await configure(client, VALIDATING, webhook)
    answer = await client.post(CONFIG_MAPS, config_map("x"))
    assert answer.status == 201, answer.body
    assert hook.paths == ["/w"]
    assert f"Host: hook.default.svc:{hook.port}" in hook.heads[0]


async def test_a_webhook_is_asked_at_endpoints_only_where_that_is_wanted(hook: AdmissionHook) -> None:
    async with Environment(enable_aggregator_routing=True) as environment:
        client = environment.client()
        service = {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}}
        assert (await client.post("/api/v1/namespaces/default/services", service)).status == 201
        config = {"service": {"namespace": "default", "name": "hook"}, "caBundle": hook.ca_bundle}
        await configure(client, VALIDATING, hook.webhook("/w", "configmaps") | {"clientConfig": config})
        answer = await client.post(CONFIG_MAPS, config_map("x"))
        assert answer.json()["message"].endswith(': no endpoints available for service "hook"')


async def test_a_service_that_is_not_there(client: Client, hook: AdmissionHook) -> None:
    config = {"service": {"namespace": "default", "name": "none", "path": "/w"}}
    await configure(client, VALIDATING, hook.webhook("/w", "configmaps") | {"clientConfig": config})
    answer = await client.post(CONFIG_MAPS, config_map("x"))
    where = "https://none.default.svc:443/w?timeout=10s"
    assert answer.json()["message"].endswith(f'failed to call webhook: Post "{where}": service "none" not found')


@pytest.mark.asyncio(loop_scope="session")
async def test_nothing_is_left_of_webhooks_when_the_server_ends(hook: AdmissionHook) -> None:
    async with Environment() as environment:
        client = environment.client()
        await configure(client, VALIDATING, hook.webhook("/w", "configmaps"))
        hook.answers["/w"] = allow
        assert (await client.post(CONFIG_MAPS, config_map("x"))).status == 201
    await hook.all_closed()


async def test_at_most_so_many_are_asked_at_a_time(
    client: Client, hook: AdmissionHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "MAX_CONCURRENT", 2)
    await configure(client, VALIDATING, *(hook.webhook(f"/{each}", "configmaps") for each in "abcde"))
    hook.held = asyncio.Event()
    writing = asyncio.ensure_future(client.post(CONFIG_MAPS, config_map("x")))
    await hook.asked(2)
    hook.held.set()
    assert (await writing).status == 201
    assert sorted(hook.paths) == ["/a", "/b", "/c", "/d", "/e"]


async def test_warnings_are_taken_as_long_as_they_can_be_sent(client: Client, hook: AdmissionHook) -> None:
    many = [str(number) for number in range(60_000)]
    hook.answers["/warn"] = lambda request: {"allowed": True, "warnings": many}
    await configure(client, VALIDATING, hook.webhook("/warn", "configmaps"))
    made = await client.post(CONFIG_MAPS, config_map("x"))
    assert made.status == 201
    assert made.headers["warning"].startswith('299 - "')


def test_warnings_are_told_once_and_not_without_end() -> None:
    warnings = ["b"]
    action = Action(verb="create", group="", version="v1", resource="configmaps")
    kind = GroupVersionKind("", "v1", "ConfigMap")
    attributes = Attributes("CREATE", UserInfo("ann"), action, kind, "x", warnings=warnings)
    attributes.warn("a", "b", "a")
    assert warnings == ["b", "a"]
    attributes.warn(*map(str, range(10_000)))
    assert len(warnings) == MAX_WARNINGS


async def test_webhooks_of_one_authority_share_their_tls_and_only_so_many_are_kept(
    client: Client, hook: AdmissionHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Endpoint] = []
    original = endpoint_of

    def noted(*args: Any) -> Endpoint:
        endpoint = original(*args)
        made.append(endpoint)
        return endpoint

    monkeypatch.setattr(clients, "endpoint_of", noted)
    monkeypatch.setattr(clients, "MAX_CLIENTS", 3)
    await configure(client, VALIDATING, *(hook.webhook(f"/{each}", "configmaps") for each in "abcde"))
    for name in "xy":
        assert (await client.post(CONFIG_MAPS, config_map(name))).status == 201
    assert len(made) > 5
    assert len({id(each.tls) for each in made}) == 1
