"""Objects of a definition with several versions, converted by a webhook or by apiVersion only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from steersman.apiextensions import conversion
from steersman.server.certificates import CertificateFiles, ensure_certificates
from steersman.testing import Environment
from steersman.webhooks import client as webhook_client
from tests.apiextensions.cluster import GROUP, Cluster, definition, version
from tests.apiextensions.conversion_hook import Hook, hosts
from tests.https_hook import http_response

NAME = f"foos.{GROUP}"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
FAILED = f"conversion webhook for {GROUP}/v1, Kind=Foo failed: "


@pytest_asyncio.fixture(loop_scope="session")
async def hook(hook_files: CertificateFiles) -> AsyncIterator[Hook]:
    async with Hook(hook_files) as found:
        yield found


def foo(version: str, name: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Foo", "metadata": {"name": name}, "spec": spec, **more}


async def create(cluster: Cluster, version: str, name: str, spec: dict[str, Any]) -> Any:
    answer = await cluster.create({"metadata": {"name": name}, "spec": spec}, version)
    assert answer.status == 201, answer.body
    return answer.json()


async def read(cluster: Cluster, path: str, **headers: str) -> Any:
    answer = await cluster.client.get(path, **headers)
    assert answer.status == 200, answer.body
    return answer.json()


async def change_and_wait(cluster: Cluster, change: dict[str, Any]) -> None:
    """Change a definition, and wait until the change is served."""
    server = cluster.client.plane.server
    assert server is not None
    before = server.catalogue.entry(GROUP, "foos")
    await cluster.change(NAME, change)
    async with asyncio.timeout(20):
        while server.catalogue.entry(GROUP, "foos") is before:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)


async def test_objects_are_written_and_read_in_any_version(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config()))
    created = await create(cluster, "v2", "a", {"hostName": "one"})
    assert (created["apiVersion"], created["spec"]) == (f"{GROUP}/v2", {"hostName": "one"})
    assert (await read(cluster, f"{cluster.path('v1')}/a"))["spec"] == {"host": "one"}
    assert (await read(cluster, f"{cluster.path('v2')}/a"))["spec"] == {"hostName": "one"}
    assert hook.calls == [("v1", [("v2", "a")]), ("v2", [("v1", "a")]), ("v2", [("v1", "a")])]


async def test_what_a_webhook_is_asked(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one"})
    await read(cluster, f"{cluster.path('v2')}/a")
    (review,), (head,) = hook.reviews, hook.heads
    assert head.startswith("POST /convert?timeout=30s HTTP/1.1\r\n")
    assert "User-Agent: kube-apiserver-admission\r\n" in head
    (sent,) = review["request"]["objects"]
    assert (review["apiVersion"], review["request"]["desiredAPIVersion"]) == ("apiextensions.k8s.io/v1", f"{GROUP}/v2")
    assert (sent["apiVersion"], sent["spec"], sorted(sent["metadata"])) == (
        f"{GROUP}/v1",
        {"host": "one"},
        ["creationTimestamp", "generation", "managedFields", "name", "namespace", "uid"],
    )


async def test_the_first_known_review_is_used(cluster: Cluster, hook: Hook) -> None:
    config = hook.config()
    config["webhook"]["conversionReviewVersions"] = ["v9", "v1beta1", "v1"]
    await cluster.define(hosts(config))
    await create(cluster, "v1", "a", {"host": "one"})
    await read(cluster, f"{cluster.path('v2')}/a")
    assert [each["apiVersion"] for each in hook.reviews] == ["apiextensions.k8s.io/v1beta1"]


async def test_a_list_is_converted_by_one_request_over_one_connection(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config()))
    for name in "cab":
        await create(cluster, "v1", name, {"host": name})
    listed = await read(cluster, cluster.path("v2"))
    assert [each["spec"]["hostName"] for each in listed["items"]] == ["a", "b", "c"]
    assert hook.calls == [("v2", [("v1", "a"), ("v1", "b"), ("v1", "c")])]
    for _ in range(3):
        await read(cluster, f"{cluster.path('v2')}/a")
    assert (len(hook.calls), hook.connections) == (4, 1)


async def test_a_connection_that_the_webhook_has_closed_is_made_again(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one"})
    await read(cluster, f"{cluster.path('v2')}/a")
    await hook.stop()
    await hook.start()
    await read(cluster, f"{cluster.path('v2')}/a")
    assert hook.connections == 2


async def test_a_webhook_that_converts_only_the_first_object_is_asked_for_one_after_the_other(
    cluster: Cluster, hook: Hook
) -> None:
    """kube-apiserver sends one request per object."""

    def first_only(answer: Any, review: Any) -> Any:
        del answer["response"]["convertedObjects"][1:]
        return answer

    hook.answer = first_only
    await cluster.define(hosts(hook.config()))
    for name in "ab":
        await create(cluster, "v1", name, {"host": name})
    listed = await read(cluster, cluster.path("v2"))
    assert [each["spec"]["hostName"] for each in listed["items"]] == ["a", "b"]
    assert [len(objects) for _, objects in hook.calls] == [2, 1, 1]


async def test_many_large_objects_are_converted_by_several_requests(
    cluster: Cluster, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "REVIEW_BYTES", 20_000)
    await cluster.define(hosts(hook.config()))
    for number in range(6):
        await create(cluster, "v1", f"f{number}", {"host": str(number), "note": "x" * 6_000})
    listed = await read(cluster, cluster.path("v2"))
    assert [each["spec"]["hostName"] for each in listed["items"]] == list("012345")
    assert [len(objects) for _, objects in hook.calls] == [3, 3]


# Failures


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (http_response(500, b"oops"), 'an error on the server ("oops") has prevented the request from succeeding'),
        (http_response(503, b"busy"), "the server is currently unable to handle the request"),
        (http_response(404, b"no"), "the server could not find the requested resource"),
        (
            http_response(200, b"", "application/json"),
            "0-length response with status code: 200 and content type: application/json",
        ),
        (
            http_response(
                400,
                json.dumps(
                    {
                        "kind": "Status",
                        "apiVersion": "v1",
                        "status": "Failure",
                        "message": "bad thing",
                        "reason": "BadRequest",
                        "code": 400,
                    }
                ).encode(),
                "application/json",
            ),
            "bad thing",
        ),
    ],
)
async def test_requests_that_fail(cluster: Cluster, hook: Hook, answer: Any, text: str) -> None:
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one"})
    hook.answer = lambda *_: answer
    for path in (
        f"{cluster.path('v2')}/a",
        f"{cluster.path('v2')}?limit=500",
        f"{cluster.path('v2')}/a/scale",
        f"{cluster.path('v2')}/a/status",
    ):
        found = await cluster.client.get(path)
        assert (found.status, found.json()) == (
            500,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": FAILED + text,
                "code": 500,
            },
        )
    assert (await read(cluster, f"{cluster.path('v1')}/a"))["spec"] == {"host": "one"}


async def test_nothing_is_written_that_cannot_be_converted(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config()))
    before = await create(cluster, "v1", "a", {"host": "one"})
    await read(cluster, cluster.path("v2"))
    hook.answer = lambda answer, review: answer | {"response": {"uid": "other"}}
    path, text = cluster.path("v2"), f"conversion webhook for {GROUP}/v2, Kind=Foo failed: expected response.uid="
    configuration = json.dumps(foo("v2", "b", {"hostName": "x"})).encode()
    writes = [
        await cluster.create({"metadata": {"name": "b"}, "spec": {}}, "v2"),
        await cluster.client.post(f"{path}?dryRun=All", foo("v2", "b", {})),
        await cluster.client.request("PATCH", f"{path}/a", {"spec": {"hostName": "x"}}, content_type=MERGE),
        await cluster.client.request("PATCH", f"{path}/b?fieldManager=m", configuration, content_type=APPLY),
    ]
    for answer in writes:
        assert (answer.status, answer.json()["message"].startswith(text)) == (500, True), answer.body
    deleted = await cluster.client.delete(f"{path}/a")
    assert (deleted.status, deleted.json()["message"].startswith(FAILED)) == (500, True)
    found = await read(cluster, cluster.path("v1"))
    assert [each["metadata"]["resourceVersion"] for each in found["items"]] == [before["metadata"]["resourceVersion"]]


async def test_a_webhook_that_is_not_there(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config(url="https://127.0.0.1:1/x")))
    await create(cluster, "v1", "a", {"host": "one"})
    answer = await cluster.client.get(f"{cluster.path('v2')}/a")
    text = 'Post "https://127.0.0.1:1/x?timeout=30s": dial tcp 127.0.0.1:1: connect: connection refused'
    assert answer.json()["message"] == FAILED + text


async def test_a_webhook_that_another_authority_vouches_for(cluster: Cluster, hook: Hook, tmp_path: Path) -> None:
    other = Hook(ensure_certificates(tmp_path, ["127.0.0.1"]))
    await cluster.define(hosts(hook.config(caBundle=other.ca_bundle)))
    await create(cluster, "v1", "a", {"host": "one"})
    answer = await cluster.client.get(f"{cluster.path('v2')}/a")
    text = f'Post "{hook.url}?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown'
    assert answer.json()["message"].startswith(FAILED + text)
    await change_and_wait(cluster, {"spec": {"conversion": hook.config()}})
    assert (await read(cluster, f"{cluster.path('v2')}/a"))["spec"] == {"hostName": "one"}


async def test_a_webhook_that_says_too_much(cluster: Cluster, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "MAX_ANSWER_BYTES", 10_000)
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one"})
    hook.answer = lambda *_: b"{" + b" " * 50_000 + b"}"
    answer = await cluster.client.get(f"{cluster.path('v2')}/a")
    assert answer.json()["message"] == FAILED + "the answer is longer than 10000 bytes"


async def test_a_webhook_that_does_not_answer(cluster: Cluster, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_client, "TIMEOUT", 0.2)
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one"})
    hook.held = asyncio.Event()
    slow = asyncio.ensure_future(cluster.client.get(f"{cluster.path('v2')}/a"))
    assert (await read(cluster, f"{cluster.path('v1')}/a"))["spec"] == {"host": "one"}  # others do not wait for it
    text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert (await slow).json()["message"] == f'{FAILED}Post "{hook.url}?timeout=200ms": {text}'
    hook.held.set()


async def test_a_conversion_ends_when_nobody_waits_for_it(cluster: Cluster, hook: Hook) -> None:
    """A list of thousands of objects that a slow webhook converts one by one would run for hours."""
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one"})
    hook.held = asyncio.Event()
    two = [asyncio.ensure_future(cluster.client.get(cluster.path("v2"))) for _ in range(2)]
    await hook.asked(1)
    two[0].cancel()
    await asyncio.wait(two[:1])
    assert _conversions()
    two[1].cancel()
    async with asyncio.timeout(20):
        while _conversions():  # noqa: ASYNC110 - nothing tells of their end
            await asyncio.sleep(0)
    hook.held.set()
    assert (await read(cluster, cluster.path("v2")))["items"][0]["spec"] == {"hostName": "one"}


def _conversions() -> list[asyncio.Task[Any]]:
    return [each for each in asyncio.all_tasks() if each.get_name() == "conversion"]


async def test_not_too_many_requests_are_under_way_at_once(
    cluster: Cluster, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "MAX_CONCURRENT", 2)
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one"})
    hook.held = asyncio.Event()
    reads = []
    for number in range(6):
        await create(cluster, "v1", f"f{number}", {"host": "one"})
        reads.append(asyncio.ensure_future(read(cluster, f"{cluster.path('v2')}/f{number}")))
    async with asyncio.timeout(20):
        await hook.asked(2)
    hook.held.set()
    assert {each["spec"]["hostName"] for each in await asyncio.gather(*reads)} == {"one"}
    assert (len(hook.calls), hook.connections) == (6, 2)


# Subresources and owners


async def test_status_and_scale_are_those_of_the_version(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one", "replicas": 2})
    path = f"{cluster.path('v2')}/a"
    assert (await read(cluster, f"{path}/scale"))["spec"] == {"replicas": 2}
    scaled = await cluster.client.request("PATCH", f"{path}/scale", {"spec": {"replicas": 5}}, content_type=MERGE)
    assert (scaled.status, scaled.json()["spec"]) == (200, {"replicas": 5})
    patch = {"status": {"state": "good"}, "spec": {"hostName": "ignored"}}
    status = await cluster.client.request("PATCH", f"{path}/status", patch, content_type=MERGE)
    assert (status.json()["status"], status.json()["spec"]) == ({"state": "good"}, {"hostName": "one", "size": 5})
    found = await read(cluster, f"{cluster.path('v1')}/a")
    assert (found["spec"], found["status"]) == ({"host": "one", "replicas": 5}, {"phase": "good"})


async def test_a_scale_of_another_version_leaves_the_owners_of_the_rest(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one"})
    put = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"replicas": 3},
    }
    assert (await cluster.client.put(f"{cluster.path('v2')}/a/scale", put)).status == 200
    (entry,) = (await read(cluster, f"{cluster.path('v1')}/a"))["metadata"]["managedFields"]
    assert (entry["apiVersion"], entry["fieldsV1"]) == (f"{GROUP}/v1", {"f:spec": {".": {}, "f:host": {}}})


async def test_fields_are_owned_in_the_versions_they_were_applied_in(cluster: Cluster, hook: Hook) -> None:
    """The sequence and the resulting owners were recorded from kube-apiserver."""

    async def applied(version: str, manager: str, spec: dict[str, Any], force: str = "") -> Any:
        body = json.dumps(foo(version, "a", spec)).encode()
        path = f"{cluster.path(version)}/a?fieldManager={manager}{force}"
        return await cluster.client.request("PATCH", path, body, content_type=APPLY)

    await cluster.define(hosts(hook.config()))
    await applied("v1", "one", {"host": "h", "note": "n"})
    await applied("v2", "two", {"hostName": "h", "size": 2})
    conflict = await applied("v2", "three", {"hostName": "other"})
    assert conflict.status == 409
    assert {(each["field"], each["message"]) for each in conflict.json()["details"]["causes"]} == {
        (".spec.host", 'conflict with "one"'),
        (".spec.hostName", 'conflict with "two"'),
    }
    await applied("v2", "three", {"hostName": "other"}, "&force=true")
    await applied("v2", "one", {"note": "m"})
    last = await applied("v1", "two", {})
    assert (last.status, last.json()["spec"]) == (200, {"host": "other", "note": "m"})
    entries = {
        each["manager"]: (each["apiVersion"][-2:], each["fieldsV1"]["f:spec"])
        for each in last.json()["metadata"]["managedFields"]
    }
    assert entries == {"one": ("v2", {"f:note": {}}), "two": ("v1", {}), "three": ("v2", {"f:hostName": {}})}


async def test_objects_are_judged_in_the_version_of_the_request(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one"})
    answer = await cluster.client.request(
        "PATCH", f"{cluster.path('v2')}/a", {"spec": {"hostName": "x" * 30}}, content_type=MERGE
    )
    causes = answer.json()["details"]["causes"]
    assert (answer.status, [each["field"] for each in causes]) == (422, ["spec.hostName"])


async def test_rows_and_fields_are_those_of_the_version(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config()))
    for name in "ab":
        await create(cluster, "v1", name, {"host": name})
    table = await read(cluster, f"{cluster.path('v2')}?fieldSelector=spec.hostName%3Da", accept=TABLE)
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Host v2"]
    assert [row["cells"] for row in table["rows"]] == [["a", "a"]]
    answer = await cluster.client.get(f"{cluster.path('v2')}?fieldSelector=spec.host%3Da")
    assert (answer.status, answer.json()["message"]) == (400, "field label not supported: spec.host")


# Changes of the definition


async def test_what_was_stored_before_is_read_after_the_stored_version_has_changed(
    cluster: Cluster, hook: Hook
) -> None:
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "old", {"host": "one"})
    await change_and_wait(cluster, {"spec": hosts(hook.config(), storage="v2")["spec"]})
    await create(cluster, "v2", "new", {"hostName": "two"})
    hook.calls.clear()
    listed = await read(cluster, cluster.path("v2"))
    assert [each["spec"]["hostName"] for each in listed["items"]] == ["two", "one"]
    assert hook.calls == [("v2", [("v1", "old")])]
    listed = await read(cluster, cluster.path("v1"))
    assert [each["spec"]["host"] for each in listed["items"]] == ["two", "one"]
    assert hook.calls[1:] == [("v1", [("v2", "new")])]
    found = await read(cluster, f"{cluster.path('v2')}/old")
    assert (await cluster.client.put(f"{cluster.path('v2')}/old", found)).status == 200
    hook.calls.clear()
    assert (await read(cluster, f"{cluster.path('v2')}/old"))["spec"] == {"hostName": "one"}
    assert hook.calls == []


async def test_a_definition_may_begin_and_cease_to_ask_a_webhook(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts({"strategy": "None"}))
    await create(cluster, "v1", "a", {"host": "one", "note": "n"})
    assert (await read(cluster, f"{cluster.path('v2')}/a"))["spec"] == {"note": "n"}
    await change_and_wait(cluster, {"spec": {"conversion": hook.config()}})
    assert (await read(cluster, f"{cluster.path('v2')}/a"))["spec"] == {"hostName": "one", "note": "n"}
    await change_and_wait(cluster, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
    assert (await read(cluster, f"{cluster.path('v2')}/a"))["spec"] == {"note": "n"}


async def test_what_goes_with_its_last_finalizer_is_answered_in_the_version_of_the_request(cluster: Cluster) -> None:
    filled = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "filled": {"type": "integer", "default": 7}},
            }
        },
    }
    plain = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    await cluster.define(definition(version("v1", filled, storage=False), version("v2", plain)))
    body = {"metadata": {"name": "a", "finalizers": ["example.com/stay"]}, "spec": {"a": "b"}}
    assert (await cluster.create(body, "v1")).status == 201
    assert (await cluster.client.delete(f"{cluster.path('v1')}/a")).status == 200
    freed = (await cluster.client.patch(f"{cluster.path('v1')}/a", {"metadata": {"finalizers": None}})).json()
    assert (freed["apiVersion"], freed["spec"]) == (f"{GROUP}/v1", {"a": "b", "filled": 7})
    assert (await cluster.client.get(f"{cluster.path('v1')}/a")).status == 404


async def test_objects_are_deleted_with_their_definition_though_the_webhook_fails(cluster: Cluster, hook: Hook) -> None:
    await cluster.define(hosts(hook.config()))
    await create(cluster, "v1", "a", {"host": "one"})
    hook.answer = lambda *_: http_response(500, b"oops")
    assert (
        await cluster.client.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}")
    ).status == 200
    await cluster.answers(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}", 404)


# Services


async def test_a_webhook_behind_a_service(cluster: Cluster, hook: Hook) -> None:
    service = {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    assert (await cluster.client.post("/api/v1/namespaces/default/services", service)).status == 201
    address = {"name": "hook", "namespace": "default", "port": hook.port, "path": "/convert"}
    await cluster.define(hosts(hook.config(service=address, url=None)))
    await create(cluster, "v1", "a", {"host": "one"})
    assert (await read(cluster, f"{cluster.path('v2')}/a"))["spec"] == {"hostName": "one"}
    assert hook.heads[0].startswith(f"POST /convert?timeout=30s HTTP/1.1\r\nHost: hook.default.svc:{hook.port}\r\n")


@pytest.mark.parametrize(
    ("service", "text"),
    [
        (None, 'service "hook" not found'),
        ({"ports": [{"port": 8443}]}, 'no service port 443 found for service "hook"'),
        ({"clusterIP": "None", "ports": [{"port": 443}]}, 'cannot route to service with ClusterIP "None"'),
    ],
)
async def test_services_that_lead_nowhere(
    cluster: Cluster, hook: Hook, service: dict[str, Any] | None, text: str
) -> None:
    if service is not None:
        body = {"metadata": {"name": "hook"}, "spec": service}
        assert (await cluster.client.post("/api/v1/namespaces/default/services", body)).status == 201
    await cluster.define(hosts(hook.config(service={"name": "hook", "namespace": "default"}, url=None)))
    await create(cluster, "v1", "a", {"host": "one"})
    answer = await cluster.client.get(f"{cluster.path('v2')}/a")
    assert answer.json()["message"] == f'{FAILED}Post "https://hook.default.svc:443/?timeout=30s": {text}'


@pytest.mark.asyncio(loop_scope="session")
async def test_what_is_counted(hook: Hook) -> None:
    async with Environment() as environment:
        cluster = Cluster(environment.client())
        await cluster.define(hosts(hook.config()))
        await create(cluster, "v1", "a", {"host": "one"})
        await read(cluster, f"{cluster.path('v2')}/a")
        hook.answer = lambda *_: b"{}"
        await cluster.client.get(f"{cluster.path('v2')}/a")
        text = (await cluster.client.get("/metrics")).body.decode()
    malformed = 'failure_type="conversion_webhook_malformed_response_failure"'
    of_versions = f'{{crd_name="{NAME}",from_version="v1",to_version="v2",succeeded='
    for line in (
        'apiserver_conversion_webhook_request_total{result="success",failure_type=""} 1',
        f'apiserver_conversion_webhook_request_total{{result="failure",{malformed}}} 1',
        'apiserver_conversion_webhook_duration_seconds_count{result="success",failure_type=""} 1',
        f'apiserver_crd_conversion_webhook_duration_seconds_count{of_versions}"true"}} 1',
        f'apiserver_crd_conversion_webhook_duration_seconds_count{of_versions}"false"}} 1',
    ):
        assert line in text
