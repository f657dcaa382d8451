"""Faults of calls that the server makes: of admission webhooks and conversion webhooks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from steersman.faults.fault import InvalidFault
from steersman.server.certificates import CertificateFiles
from steersman.testing import Client, Environment
from steersman.testing.faults import Faults
from tests.admission_plugins.webhook.admission_hook import VALIDATING, AdmissionHook, configure, deny
from tests.apiextensions.cluster import GROUP, Cluster
from tests.apiextensions.conversion_hook import Hook, hosts

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
FAILED = 'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: '


@pytest_asyncio.fixture
async def environment() -> AsyncIterator[Environment]:
    async with Environment() as running:
        yield running


@pytest.fixture
def client(environment: Environment) -> Client:
    return environment.client()


@pytest.fixture
def faults(environment: Environment) -> Faults:
    return environment.faults


@pytest_asyncio.fixture
async def hook(hook_files: CertificateFiles) -> AsyncIterator[AdmissionHook]:
    async with AdmissionHook(hook_files) as found:
        yield found


@pytest_asyncio.fixture
async def converter(hook_files: CertificateFiles) -> AsyncIterator[Hook]:
    async with Hook(hook_files) as found:
        yield found


async def create(client: Client, name: str = "x") -> tuple[int, str]:
    """Create a ConfigMap, and return the status code and the message of an error."""
    answer = await client.post(CONFIG_MAPS, {"metadata": {"name": name}})
    return answer.status, answer.json().get("message", "")


@pytest.mark.parametrize(
    ("effect", "message"),
    [
        ({"code": 503}, "injected fault: 503"),
        ({"code": 500, "message": "no memory"}, "no memory"),
        ({"refuse": True}, "dial tcp 127.0.0.1:{port}: connect: connection refused"),
        ({"cut": True}, "EOF"),
        ({"hang": True}, "context deadline exceeded"),
        ({"delay": 30}, "context deadline exceeded"),
        ({"garbage": True}, "couldn't get version/kind; json parse error: "),
    ],
)
async def test_a_webhook_fails_as_its_policy_says(
    client: Client, faults: Faults, hook: AdmissionHook, effect: dict[str, Any], message: str
) -> None:
    quick = {"timeoutSeconds": 1}
    await configure(client, VALIDATING, hook.webhook("/a", "configmaps", failurePolicy="Fail", **quick))
    await configure(client, VALIDATING, hook.webhook("/b", "secrets", failurePolicy="Ignore", **quick), name="other")
    with faults.add(webhook="a.example.com", **effect) as failing, faults.add(webhook="other", **effect) as ignored:
        secret = client.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "x"}})
        (code, text), answer = await asyncio.gather(create(client), secret)  # at once, as some effects take a second
    assert (code, text.startswith(FAILED)) == (500, True), text
    assert message.format(port=hook.root.rpartition(":")[2]) in text
    assert (answer.status, ignored.injected) == (201, 1)
    assert hook.paths == []
    (hit,) = failing.last
    assert (hit.verb, hit.resource, hit.name) == ("call", "webhooks", "hooks/a.example.com")
    assert (await create(client))[0] == 201


async def test_a_webhook_whose_answer_is_lost_was_called(client: Client, faults: Faults, hook: AdmissionHook) -> None:
    await configure(client, VALIDATING, hook.webhook("/a", "configmaps"))
    with faults.add(webhook="hooks/*", lose_answer=True, times=1):
        code, text = await create(client)
        assert (code, text.endswith("EOF"), hook.paths) == (500, True, ["/a"])
        assert (await create(client))[0] == 201


async def test_a_slow_webhook_decides_nevertheless(client: Client, faults: Faults, hook: AdmissionHook) -> None:
    hook.answers["/a"] = deny
    await configure(client, VALIDATING, hook.webhook("/a", "configmaps"))
    with faults.add(webhook="a.*", delay=0.02, delay_after=0.02):
        began = asyncio.get_running_loop().time()
        assert (await create(client))[0] == 400
        assert asyncio.get_running_loop().time() - began >= 0.04


async def test_other_webhooks_and_requests_pass(client: Client, faults: Faults, hook: AdmissionHook) -> None:
    await configure(client, VALIDATING, hook.webhook("/a", "configmaps"))
    with faults.add(webhook="b.example.com", code=500) as fault, faults.add(conversion="*", code=500) as other:
        assert (await create(client))[0] == 201
        assert (fault.matched, other.matched) == (0, 0)


async def test_conversions_fail(environment: Environment, faults: Faults, converter: Hook) -> None:
    cluster = Cluster(environment.client())
    await cluster.define(hosts(converter.config()))
    spec = {"metadata": {"name": "a"}, "spec": {"host": "one"}}
    assert (await cluster.create(spec, "v1")).status == 201
    for effect, message in (
        ({"code": 500, "message": "no memory"}, "no memory"),
        ({"refuse": True}, "connect: connection refused"),
        ({"garbage": True}, "json parse error"),
    ):
        with faults.add(conversion=f"foos.{GROUP}", **effect) as fault:
            answer = await cluster.client.get(f"{cluster.path('v2')}/a")
            assert (answer.status, message in answer.json()["message"]) == (500, True), answer.json()
            assert [each.resource for each in fault.last] == ["conversions"]
            assert (await cluster.client.get(f"{cluster.path('v1')}/a")).status == 200
    assert (await cluster.client.get(f"{cluster.path('v2')}/a")).json()["spec"] == {"hostName": "one"}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            {"webhook": "a", "verb": "create", "code": 500},
            "authenticationWebhooks and authorizationWebhooks go with no other",
        ),
        ({"webhook": "a", "hold_events": True}, "effect.watch: is for requests, not for calls"),
        (
            {"verb": "create", "refuse": True},
            "effect.refuse: is for calls, which one of these lists of match names: webhooks",
        ),
        ({"webhook": "a", "refuse": True, "hang": True}, "effect: only one of"),
    ],
)
async def test_mixtures_are_refused(faults: Faults, wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFault, match=message.replace(".", r"\.")):
        faults.add(**wanted)


async def test_the_audit_log_names_the_fault_of_a_request_and_of_a_call(
    tmp_path: Path, hook_files: CertificateFiles, hook: AdmissionHook
) -> None:
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, verbs: [create]}]\n")
    async with Environment(audit_policy_file=str(policy), audit_log_path=str(log)) as environment:
        client = environment.client()
        await configure(client, VALIDATING, hook.webhook("/a", "configmaps", failurePolicy="Ignore"))
        for chosen in ({"webhook": "hooks"}, {"resource": "configmaps"}):
            with environment.faults.add(code=418, **chosen):  # type: ignore[arg-type]
                await create(client)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    found = {
        each["responseStatus"]["code"]: each.get("annotations", {}).get("simulation.steersman.dev/fault", "")
        for each in events
        if each["objectRef"]["resource"] == "configmaps" and each["stage"] == "ResponseComplete"
    }
    assert found.keys() == {201, 418}
    assert all(each.startswith("test-") for each in found.values()), found
