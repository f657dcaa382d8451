"""Faults as clients in Python meet them: the official client, and the blocking client of tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import kubernetes
import pytest
import urllib3
from kubernetes.client.exceptions import ApiException

from steersman.testing import ThreadedEnvironment

NAMES = (f"m{number}" for number in count())
HOOK = {
    "name": "hook.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}


@pytest.fixture(scope="module")
def environment() -> Iterator[ThreadedEnvironment]:
    with ThreadedEnvironment(listen=True, nodes=1) as running:
        yield running


@pytest.fixture
def core(environment: ThreadedEnvironment) -> Iterator[kubernetes.client.CoreV1Api]:
    """Yield the official client with a connection of its own, which repeats nothing, without faults."""
    environment.faults.clear()
    with environment.kubernetes() as api:
        api.rest_client.pool_manager.connection_pool_kw["retries"] = False
        yield kubernetes.client.CoreV1Api(api)
    environment.faults.clear()


def config_map(name: str, value: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"v": value}}


def names(core: kubernetes.client.CoreV1Api) -> set[str]:
    return {each.metadata.name for each in core.list_namespaced_config_map("default").items}


@pytest.mark.parametrize(
    ("effect", "raised", "made"),
    [
        ({"code": 409}, ApiException, False),
        ({"code": 503, "retry_after": 1}, ApiException, False),
        ({"cut": True}, urllib3.exceptions.HTTPError, False),
        ({"lose_answer": True}, urllib3.exceptions.HTTPError, True),
        ({"hang": True}, urllib3.exceptions.TimeoutError, False),
        ({"delay": 30.0}, urllib3.exceptions.TimeoutError, False),
        ({"delay_after": 30.0}, urllib3.exceptions.TimeoutError, True),
    ],
)
def test_a_create_fails(
    environment: ThreadedEnvironment,
    core: kubernetes.client.CoreV1Api,
    effect: dict[str, Any],
    raised: type[Exception],
    made: bool,
) -> None:
    name = next(NAMES)
    with environment.faults.add(name=name, verb="create", **effect) as fault:
        with pytest.raises(raised) as failed:
            core.create_namespaced_config_map("default", config_map(name), _request_timeout=0.3)
        assert fault.injected == 1
    if isinstance(failed.value, ApiException):
        assert (failed.value.status, failed.value.headers.get("Retry-After")) == (
            effect["code"],
            "1" if "retry_after" in effect else None,
        )
    assert (name in names(core)) is made


def test_an_answer_is_garbage(environment: ThreadedEnvironment, core: kubernetes.client.CoreV1Api) -> None:
    with (
        environment.faults.add(verb="get", garbage=True),
        environment.client() as client,
        pytest.raises(ValueError, match="Expecting value"),
    ):
        client.json("GET", "/api/v1/namespaces/default")
    assert core.read_namespace("default").metadata.name == "default"


def test_a_watch_expires(environment: ThreadedEnvironment, core: kubernetes.client.CoreV1Api) -> None:
    name = next(NAMES)
    core.create_namespaced_config_map("default", config_map(name))
    with environment.faults.add(verb="watch", user_agent="OpenAPI*", close_watch_after_events=1, expire_watch=True):
        answer = core.list_namespaced_config_map(
            "default",
            watch=True,
            field_selector=f"metadata.name={name}",
            resource_version="0",
            _preload_content=False,
            _request_timeout=10,
        )
        added, error = map(json.loads, answer.data.splitlines())
    assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", name)
    assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_events_are_held_back(environment: ThreadedEnvironment, core: kubernetes.client.CoreV1Api) -> None:
    name = next(NAMES)
    core.create_namespaced_config_map("default", config_map(name))
    held = environment.faults.add(verb="watch", user_agent="OpenAPI*", hold_events=True)
    watch = kubernetes.watch.Watch()
    events = watch.stream(
        core.list_namespaced_config_map, "default", field_selector=f"metadata.name={name}", resource_version="0"
    )
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(next, events)
        environment.wait_until(lambda: held.injected == 1)
        core_of_others = kubernetes.client.CoreV1Api(environment.kubernetes())
        core_of_others.read_namespaced_config_map(name, "default")
        core_of_others.api_client.close()
        assert not first.done()
        held.remove()
        assert first.result(10)["object"].data == {"v": "1"}
    watch.stop()


def test_reads_are_stale(
    environment: ThreadedEnvironment, core: kubernetes.client.CoreV1Api, connect: Callable[[], Any]
) -> None:
    name = next(NAMES)
    core.create_namespaced_config_map("default", config_map(name))
    with environment.faults.add(resource="configmaps", stale_hold=True):
        core.replace_namespaced_config_map(name, "default", config_map(name, "2"))
        other = connect()
        for version, value in (("0", "1"), (None, "2"), ("0", "2")):
            more = {} if version is None else {"resource_version": version}
            found = other.list_namespaced_config_map("default", field_selector=f"metadata.name={name}", **more)
            assert [each.data["v"] for each in found.items] == [value], version


@pytest.fixture
def connect(environment: ThreadedEnvironment) -> Iterator[Callable[[], Any]]:
    """Return a function that makes a client with a new connection."""
    made = []

    def new() -> kubernetes.client.CoreV1Api:
        api = environment.kubernetes()
        made.append(api)
        return kubernetes.client.CoreV1Api(api)

    yield new
    for each in made:
        each.close()


def test_a_webhook_fails(environment: ThreadedEnvironment, core: kubernetes.client.CoreV1Api) -> None:
    hooks = kubernetes.client.AdmissionregistrationV1Api(core.api_client)
    hooks.create_validating_webhook_configuration({"metadata": {"name": "hooks"}, "webhooks": [HOOK]})
    try:
        with environment.faults.add(webhook="hooks", code=500, message="no memory"):
            with pytest.raises(ApiException) as failed:
                core.create_namespaced_secret("default", {"metadata": {"name": "a"}})
            assert (failed.value.status, "failed to call webhook: no memory" in failed.value.body) == (500, True)
    finally:
        hooks.delete_validating_webhook_configuration("hooks")


def test_a_pod_s_status_comes_when_the_node_is_no_longer_slow(
    environment: ThreadedEnvironment, core: kubernetes.client.CoreV1Api
) -> None:
    name = next(NAMES)
    with environment.faults.add(node="*", delay_syncs=600):
        body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        core.create_namespaced_pod("default", body)
        environment.wait_for("pods", name, lambda pod: pod["spec"].get("nodeName"))
        assert core.read_namespaced_pod(name, "default").status.phase == "Pending"
    environment.wait_for("pods", name, lambda pod: pod["status"]["phase"] == "Running")
