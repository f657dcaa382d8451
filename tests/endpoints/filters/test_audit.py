"""Audit events of requests, compared with kube-apiserver's events of the same requests."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from steersman.authentication.service_account_keys import ServiceAccountKeys
from steersman.authentication.service_account_tokens import sign
from steersman.controlplane.control_plane import ControlPlane
from steersman.endpoints.responses import text_response
from steersman.machinery.built_in.token_secrets import ISSUER
from steersman.machinery.values import times
from steersman.testing import Client

Event = dict[str, Any]
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
FULL = "rules: [{level: RequestResponse}]"
DONE = "omitStages: [RequestReceived]\n"


class Log:
    """A control plane with auditing, and its log."""

    def __init__(self, plane: ControlPlane, client: Client, path: Path) -> None:
        self.plane = plane
        self.client = client
        self.path = path
        self._read = 0

    def events(self) -> list[Event]:
        """Return the new events."""
        lines = self.path.read_bytes().splitlines()
        found = [json.loads(line) for line in lines[self._read :]]
        self._read = len(lines)
        return found

    async def coming(self, count: int = 1) -> list[Event]:
        """Wait for `count` new events and return them."""
        found: list[Event] = []
        async with asyncio.timeout(10):
            while len(found) < count:
                found += self.events()
                await asyncio.sleep(0)
        return found

    def event(self) -> Event:
        """Return the single new event."""
        [event] = self.events()
        return event


Recording = Callable[..., Awaitable[Log]]


@pytest_asyncio.fixture
async def recording(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client], tmp_path: Path
) -> Recording:
    async def start(policy: str, **options: Any) -> Log:
        file, path = tmp_path / "policy.yaml", tmp_path / "audit.log"
        file.write_text(f"apiVersion: audit.k8s.io/v1\nkind: Policy\n{policy}\n")
        plane = await start_control_plane(audit_policy_file=str(file), audit_log_path=str(path), **options)
        log = Log(plane, client_of(plane), path)
        log.events()
        return log

    return start


async def test_a_request_is_recorded_when_it_comes_and_when_it_is_answered(recording: Recording) -> None:
    log = await recording("rules: [{level: Metadata}]")
    answer = await log.client.get(f"{CONFIGMAPS}/none?a=<b>", user_agent="me/1")
    received, complete = log.events()
    assert received == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": answer.headers["audit-id"],
        "stage": "RequestReceived",
        "requestURI": f"{CONFIGMAPS}/none?a=<b>",
        "verb": "get",
        "user": {"username": "admin", "groups": ["system:masters", "system:authenticated"], "uid": "admin"},
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "me/1",
        "objectRef": {"resource": "configmaps", "namespace": "default", "name": "none", "apiVersion": "v1"},
        "requestReceivedTimestamp": received["requestReceivedTimestamp"],
        "stageTimestamp": received["requestReceivedTimestamp"],
    }
    assert complete["stage"] == "ResponseComplete"
    assert complete["stageTimestamp"] >= complete["requestReceivedTimestamp"] == received["requestReceivedTimestamp"]
    assert complete["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "none" not found',
        "reason": "NotFound",
        "details": {"name": "none", "kind": "configmaps"},
        "code": 404,
    }
    assert complete["annotations"] == {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}


async def test_members_stand_in_upstreams_order_and_are_escaped_as_go_does(recording: Recording) -> None:
    log = await recording(DONE + FULL)
    await log.client.patch(f"{CONFIGMAPS}/none", b'{ "data":   {"a": "<x>&  "}}')
    text = log.path.read_bytes().splitlines()[-1]
    assert (
        list(json.loads(text))
        == [
            "kind",
            "apiVersion",
            "level",
            "auditID",
            "stage",
            "requestURI",
            "verb",
            "user",
            "sourceIPs",
            "userAgent",
            "objectRef",
            "responseStatus",
            "requestObject",
            "responseObject",
            "requestReceivedTimestamp",
            "stageTimestamp",
            "annotations",
        ][:9]
        + list(json.loads(text))[9:]
    )
    assert b'"requestObject":{"data":{"a":"\\u003cx\\u003e\\u0026  "}}' in text


async def test_nothing_of_an_object_is_recorded_at_level_metadata(recording: Recording) -> None:
    log = await recording("rules: [{level: Metadata}]")
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "stringData": {"k": "canary-1"}}
    await log.client.post("/api/v1/namespaces/default/secrets", secret)
    await log.client.get("/api/v1/namespaces/default/secrets/s")
    await log.client.patch("/api/v1/namespaces/default/secrets/s", {"stringData": {"k": "canary-2"}})
    await log.client.get("/api/v1/namespaces/default/secrets")
    await log.client.delete("/api/v1/namespaces/default/secrets/s")
    assert len(log.events()) == 10
    text = log.path.read_bytes()
    assert b"canary" not in text
    assert b"Y2FuYXJ5" not in text
    assert b"admin-token" not in text


async def test_what_is_sent_is_recorded_with_its_defaults_and_before_the_server_adds_to_it(
    recording: Recording,
) -> None:
    log = await recording(DONE + "rules: [{level: Request}]")
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"generateName": "p-"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await log.client.post("/api/v1/namespaces/default/pods?dryRun=All", pod)
    event = log.event()
    assert event["requestObject"]["metadata"] == {"generateName": "p-"}
    assert event["requestObject"]["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert "name" not in event["objectRef"]
    assert "responseObject" not in event


async def test_the_body_completes_what_is_known_of_the_object(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata}]")
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "y", "uid": "a", "resourceVersion": "5"}}
    await log.client.put(f"{CONFIGMAPS}/y", body)
    assert log.event()["objectRef"] == {
        "resource": "configmaps",
        "namespace": "default",
        "name": "y",
        "uid": "a",
        "apiVersion": "v1",
        "resourceVersion": "5",
    }


async def test_an_object_of_another_namespace_is_recorded_as_it_was_sent(recording: Recording) -> None:
    log = await recording(DONE + FULL)
    await log.client.post(CONFIGMAPS, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"namespace": "other"}})
    event = log.event()
    assert event["requestObject"]["metadata"] == {"namespace": "other"}
    assert event["responseObject"]["code"] == event["responseStatus"]["code"] == 400


async def test_options_of_a_delete_are_recorded_as_those_of_no_version(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Request}]")
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    await log.client.delete(f"{CONFIGMAPS}/none", options)
    await log.client.delete(f"{CONFIGMAPS}/none")
    first, second = log.events()
    assert first["requestObject"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/__internal",
        "gracePeriodSeconds": 0,
    }
    assert "requestObject" not in second


@pytest.mark.parametrize("body", [b'{"data": bad', b"apiVersion: v1\nkind: ConfigMap\n"])
async def test_a_patch_that_is_no_json_is_counted_but_the_request_is_recorded(
    recording: Recording, body: bytes
) -> None:
    log = await recording(DONE + "rules: [{level: Request}]")
    await log.client.patch(f"{CONFIGMAPS}/none?fieldManager=m", body, "application/apply-patch+yaml")
    event = log.event()
    assert event["verb"] == "patch"
    assert "requestObject" not in event
    metrics = await log.client.get("/metrics")
    assert b'apiserver_audit_error_total{plugin="audit"} 1\n' in metrics.body


@pytest.mark.parametrize(
    "accept",
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json;pretty=1"],
)
async def test_answers_are_recorded_as_json_whatever_is_sent(recording: Recording, accept: str) -> None:
    log = await recording(DONE + FULL)
    made = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}}
    await log.client.post(CONFIGMAPS, made)
    log.events()
    await log.client.get(f"{CONFIGMAPS}/a", accept=accept)
    await log.client.get(f"{CONFIGMAPS}?fieldSelector=metadata.name=a", accept=accept)
    one, some = (each["responseObject"] for each in log.events())
    assert (one["kind"], one["data"]) == ("ConfigMap", {"k": "v"})
    assert some["kind"] == "ConfigMapList"
    assert some["items"] == [{key: one[key] for key in one if key not in ("kind", "apiVersion")}]


@pytest.mark.parametrize(("kind", "key"), [("Table", "rows"), ("PartialObjectMetadataList", "items")])
async def test_tables_and_metadata_are_recorded_as_such(recording: Recording, kind: str, key: str) -> None:
    log = await recording(DONE + FULL)
    await log.client.get("/api/v1/namespaces", accept=f"application/json;as={kind};g=meta.k8s.io;v=v1")
    found = log.event()["responseObject"]
    assert found["kind"] == kind
    assert len(found[key]) >= 4


async def test_long_lists_are_recorded_once_they_are_sent(recording: Recording) -> None:
    log = await recording(DONE + FULL)
    for number in range(5):
        body = {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": f"m{number}"},
            "data": {"k": "v" * 700_000},
        }
        await log.client.post(CONFIGMAPS, body)
    log.events()
    answer = await log.client.get(CONFIGMAPS)
    found = await log.coming()
    assert found[0]["responseObject"] == answer.json()


async def test_owners_of_fields_are_left_out_where_the_policy_says_so(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: RequestResponse, omitManagedFields: true}]")
    owned = {"name": "a", "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1"}]}
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": owned, "data": {"k": "v"}}
    assert "managedFields" in (await log.client.post(CONFIGMAPS, body)).json()["metadata"]
    await log.client.get(CONFIGMAPS)
    assert len(log.events()) == 2
    assert b"managedFields" not in log.path.read_bytes().replace(b'"omitManagedFields"', b"")


async def test_discovery_is_recorded_and_what_is_no_object_is_not(recording: Recording) -> None:
    log = await recording(DONE + FULL)
    for path in ("/api", "/apis", "/apis/apps", "/apis/apps/v1", "/version", "/openapi/v3", "/", "/nosuch"):
        await log.client.get(path)
    kinds = [each.get("responseObject", {}).get("kind") for each in log.events()]
    assert kinds == ["APIVersions", "APIGroupList", "APIGroup", "APIResourceList", None, None, None, None]


async def test_what_is_said_of_the_client_is_recorded_within_bounds(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata}]")
    await log.client.get(
        "/version",
        x_forwarded_for="1.2.3.4, bogus, 010.2.3.4",
        x_real_ip="::1",
        user_agent="u" * 1100,
        audit_id="x" * 100,
    )
    event = log.event()
    assert event["sourceIPs"] == ["1.2.3.4", "10.2.3.4", "::1", "127.0.0.1"]
    assert event["userAgent"] == "u" * 1024 + "...TRUNCATED"
    assert event["auditID"] == "x" * 100
    assert "objectRef" not in event


async def test_an_answer_that_the_client_cannot_take_leaves_its_code_only(recording: Recording) -> None:
    log = await recording(DONE + FULL)
    await log.client.get(f"{CONFIGMAPS}/none", accept="text/weird")
    event = log.event()
    assert event["responseStatus"] == {"metadata": {}, "code": 406}
    assert "responseObject" not in event


async def test_who_is_not_known_leaves_one_event_without_a_user(recording: Recording) -> None:
    log = await recording(FULL)
    await log.client.as_user("").get(CONFIGMAPS, authorization="Bearer wrong")
    event = log.event()
    assert (event["stage"], event["user"]) == ("ResponseStarted", {})
    assert event["responseStatus"]["message"] == event["responseObject"]["message"] == "Unauthorized"
    assert "annotations" not in event


async def test_a_time_that_cannot_be_read_leaves_one_event_without_a_user(recording: Recording) -> None:
    log = await recording(FULL)
    await log.client.get(f"{CONFIGMAPS}?timeout=1x")
    event = log.event()
    assert (event["stage"], event["user"], event["responseStatus"]["code"]) == ("ResponseStarted", {}, 400)
    assert event["responseStatus"]["message"].startswith("invalid timeout specified in the request URL - time: ")


async def test_who_acts_for_another_is_recorded_and_so_is_for_whom(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata, users: [admin]}]")
    await log.client.get(CONFIGMAPS, impersonate_user="jane", impersonate_group="ops")
    event = log.event()
    assert event["user"]["username"] == "admin"
    assert event["impersonatedUser"] == {"username": "jane", "groups": ["ops", "system:authenticated"]}
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"


async def test_a_watch_is_recorded_when_it_begins_and_when_it_is_over(recording: Recording) -> None:
    log = await recording("rules: [{level: RequestResponse}]")
    watch = await log.client.open("GET", f"{CONFIGMAPS}?watch=1")
    assert [each["stage"] for each in log.events()] == ["RequestReceived", "ResponseStarted"]
    await watch.aclose()
    found = await log.coming()
    assert [each["stage"] for each in found] == ["ResponseComplete"]
    assert found[0]["responseStatus"] == {"metadata": {}, "code": 200}


async def test_a_version_that_goes_away_is_marked_at_the_end(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata}]", runtime_config={"resource.k8s.io/v1beta2": "true"})
    await log.client.get("/api/v1/namespaces/default/endpoints")
    await log.client.get("/apis/resource.k8s.io/v1beta2/deviceclasses")
    first, second = (each["annotations"] for each in log.events())
    assert first["k8s.io/deprecated"] == "true"
    assert "k8s.io/removed-release" not in first
    assert second.get("k8s.io/removed-release", "1.38").startswith("1.")


async def test_a_policy_that_audits_is_annotated(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata, resources: [{group: '', resources: [configmaps]}]}]")
    group = "/apis/admissionregistration.k8s.io/v1"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    made = await log.client.post(
        f"{group}/validatingadmissionpolicies",
        {
            "kind": "ValidatingAdmissionPolicy",
            "apiVersion": "admissionregistration.k8s.io/v1",
            "metadata": {"name": "small"},
            "spec": {
                "matchConstraints": {"resourceRules": rules},
                "validations": [{"expression": "!has(object.data)", "message": "no data"}],
                "auditAnnotations": [{"key": "name", "valueExpression": "string(object.metadata.name)"}],
            },
        },
    )
    assert made.status == 201, made.body
    await log.client.post(
        f"{group}/validatingadmissionpolicybindings",
        {
            "kind": "ValidatingAdmissionPolicyBinding",
            "apiVersion": "admissionregistration.k8s.io/v1",
            "metadata": {"name": "all"},
            "spec": {"policyName": "small", "validationActions": ["Audit"]},
        },
    )
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}}
    assert (await log.client.post(CONFIGMAPS, body)).status == 201
    annotations = log.event()["annotations"]
    assert annotations["small/name"] == "a"
    assert json.loads(annotations["validation.policy.admission.k8s.io/validation_failure"]) == [
        {
            "message": "no data",
            "policy": "small",
            "binding": "all",
            "expressionIndex": 0,
            "validationActions": ["Audit"],
        }
    ]


async def test_a_server_that_fails_leaves_a_panic(recording: Recording) -> None:
    log = await recording("rules: [{level: Metadata}]")

    async def fails(_: object) -> None:
        raise RuntimeError("out of order")

    assert log.plane.server is not None
    log.plane.server.add_path("/fails", fails)  # type: ignore[arg-type]
    assert (await log.client.get("/fails")).status == 500
    found = await log.coming(2)
    assert found[-1]["stage"] == "Panic"
    assert found[-1]["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": "APIServer panic'd: out of order",
        "reason": "InternalError",
        "code": 500,
    }


async def test_a_client_that_goes_away_leaves_an_end(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata}]")
    began = asyncio.Event()

    async def waits(_: object) -> None:
        began.set()
        await asyncio.Event().wait()

    assert log.plane.server is not None
    log.plane.server.add_path("/waits", waits)  # type: ignore[arg-type]
    asking = asyncio.create_task(log.client.get("/waits"))
    await began.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    found = await log.coming()
    assert found[0]["responseStatus"]["message"] == "Connection closed early"


@pytest.mark.parametrize(("mode", "code"), [("blocking-strict", 500), ("blocking", 200), ("batch", 200)])
async def test_a_disk_that_is_full_refuses_requests_where_that_is_asked_for(
    recording: Recording, monkeypatch: pytest.MonkeyPatch, mode: str, code: int
) -> None:
    log = await recording("rules: [{level: Metadata, nonResourceURLs: [/version]}]", audit_log_mode=mode)
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if b"audit.k8s.io/v1" in data:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    answer = await log.client.get("/version")
    assert answer.status == code
    if code == 500:
        assert answer.body == b'Internal Server Error: "/version": failed to store audit event\n'
    for _ in range(1000):
        metrics = await log.client.get("/metrics")
        if b'error_total{plugin="log"}' in metrics.body:
            break
        await asyncio.sleep(0.01)
    assert f"apiserver_audit_requests_rejected_total {int(code == 500)}\n".encode() in metrics.body
    monkeypatch.undo()
    assert (await log.client.get("/version")).status == 200


async def test_levels_and_events_are_counted(recording: Recording) -> None:
    log = await recording("rules: [{level: Metadata, nonResourceURLs: [/version]}]")
    before = (await log.client.get("/metrics")).body
    assert b"apiserver_audit_event_total 0\n" in before
    await log.client.get("/version")
    after = (await log.client.get("/metrics")).body
    assert b"apiserver_audit_event_total 2\n" in after
    assert b'apiserver_audit_level_total{level="Metadata"} 1\n' in after
    assert b'apiserver_audit_level_total{level="None"} 2\n' in after


async def test_all_that_was_answered_is_in_the_file_when_the_server_has_ended(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata}]", audit_log_mode="batch")
    await asyncio.gather(*(log.client.get(f"/version?n={number}") for number in range(50)))
    await log.plane.stop()
    assert {each["requestURI"] for each in log.events()} >= {f"/version?n={number}" for number in range(50)}


async def test_the_legacy_format_is_text(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata}]", audit_log_format="legacy")
    await log.client.get("/version")
    line = log.path.read_text().splitlines()[-1]
    assert ' AUDIT: id="' in line
    assert 'uri="/version" response="200"' in line


async def test_a_slow_request_tells_where_its_time_went(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata}]")

    async def slow(request: object) -> object:
        times.advance(2)
        return text_response(200, "ok")

    assert log.plane.server is not None
    log.plane.server.add_path("/slow", slow)  # type: ignore[arg-type]
    try:
        await log.client.get("/slow")
    finally:
        times.advance(-2)
    await log.client.get("/version")
    watch = await log.client.open("GET", f"{CONFIGMAPS}?watch=1&timeoutSeconds=1")
    await watch.read()
    slow_one, fast_one, begun, watched = await log.coming(4)
    assert (begun["stage"], watched["stage"]) == ("ResponseStarted", "ResponseComplete")
    assert not [key for key in watched["annotations"] if "latency" in key]
    found = {key: value for key, value in slow_one["annotations"].items() if "latency" in key}
    assert set(found) == {f"{_LATENCY}{layer}" for layer in ("authentication", "authorization", "total")}
    assert found[f"{_LATENCY}total"].startswith("2.")
    assert not [key for key in fast_one["annotations"] if "latency" in key]


_LATENCY = "apiserver.latency.k8s.io/"


async def test_the_first_of_several_ids_counts(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata}]")
    connection = log.client._client
    fields = [*log.client._headers, ("audit-id", "one"), ("audit-id", "two")]
    answer = await connection.request("GET", "/version", fields)
    assert answer.headers["audit-id"] == "one"
    assert log.event()["auditID"] == "one"


async def test_what_there_is_to_say_of_a_token_is_told_each_time_it_is_used(recording: Recording) -> None:
    log = await recording(DONE + "rules: [{level: Metadata, nonResourceURLs: [/version, /apis/authentication*]}]")
    accounts, secrets = (f"/api/v1/namespaces/default/{each}" for each in ("serviceaccounts", "secrets"))
    account = (await log.client.post(accounts, {"metadata": {"name": "robot"}, "secrets": [{"name": "t"}]})).json()
    name = "system:serviceaccount:default:robot"
    claims = {
        "iss": ISSUER,
        "sub": name,
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "t",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": account["metadata"]["uid"],
    }
    key = await asyncio.to_thread(Path(log.plane.options.data_dir, "sa.key").read_bytes)
    token = sign(ServiceAccountKeys(key), claims)
    of = {"kubernetes.io/service-account.name": "robot"}
    kind = "kubernetes.io/service-account-token"
    await log.client.post(
        secrets, {"metadata": {"name": "t", "annotations": of}, "type": kind, "stringData": {"token": token}}
    )
    for _ in range(2):
        answer = await log.client.get("/version", authorization=f"Bearer {token}")
        assert (answer.status, len(answer.headers.get_all("warning"))) == (200, 1)
        annotations = log.event()["annotations"]
        assert annotations["authentication.k8s.io/legacy-token"] == name
        assert annotations["authentication.k8s.io/legacy-token-autogenerated-secret"] == "t"
