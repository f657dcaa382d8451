"""Spans that a collector receives, compared with what kube-apiserver 1.36 has sent for the same requests."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from steersman.server.certificates import CertificateFiles
from steersman.testing import Client, Environment, User
from tests.admission_plugins.webhook.admission_hook import (
    MUTATING,
    VALIDATING,
    AdmissionHook,
    add,
    configure,
    patch,
)

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("grpc")

from tests.server.span_receiver import Received, attributes, receiving

USERS = (User("admin", ("system:masters",)), User("alice", ("dev",)))
RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded_spans.json").read_text())
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PROBE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}, "data": {"a": "b"}}
APPLIED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}, "data": {"z": "1"}}
APPLY = "application/apply-patch+yaml"
REQUESTS: list[tuple[str, str, str, Any, dict[str, str]]] = [
    ("create", "POST", CONFIG_MAPS, PROBE, {}),
    ("get", "GET", f"{CONFIG_MAPS}/probe", None, {}),
    ("list", "GET", CONFIG_MAPS, None, {}),
    ("update", "PUT", f"{CONFIG_MAPS}/probe", {**PROBE, "data": {"a": "c"}}, {}),
    ("patch", "PATCH", f"{CONFIG_MAPS}/probe", {"data": {"x": "y"}}, {"content-type": "application/merge-patch+json"}),
    ("apply", "PATCH", f"{CONFIG_MAPS}/probe?fieldManager=p", APPLIED, {"content-type": APPLY}),
    ("delete", "DELETE", f"{CONFIG_MAPS}/probe", None, {}),
    ("version", "GET", "/version", None, {}),
    ("get absent", "GET", f"{CONFIG_MAPS}/absent", None, {}),
    ("deletecollection", "DELETE", CONFIG_MAPS, None, {}),
    ("get scale", "GET", "/apis/apps/v1/namespaces/default/deployments/x/scale", None, {}),
    ("create malformed", "POST", CONFIG_MAPS, {"kind": "Secret"}, {}),
]
VOLATILE = {"server.address", "server.port", "network.peer.address", "network.peer.port", "client.address", "client"}
"""Attributes of the connection, which these requests do not have: they have none."""
SIZES = {"http.response.body.size", "http.request.body.size", "len", "size"}
GO = {"encoder", "writer"}
"""Attributes that name parts of the Go program."""
NOT_HERE = {
    "About to Get from underlying storage",
    "Listed items from cache",
    "Ready",
    "Resized result",
    "Transaction prepared",
    "TransformToStorage succeeded",
    "decode succeeded",
    "watchCache fresh enough",
    "watchCache locked acquired",
}
"""Events of work that this server does not do."""
SPANS_NOT_HERE = {"List(recursive=false) etcd3"}


@pytest.fixture(scope="module")
def collector() -> Any:
    with receiving() as received:
        yield received


def configuration(collector: Received, folder: Path, *, rate: int) -> Path:
    """Write a configuration that exports to the collector."""
    file = folder / "tracing.yaml"
    file.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
        f"endpoint: 127.0.0.1:{collector.port}\nsamplingRatePerMillion: {rate}\n"
    )
    return file


def environment_of(keys: Path, file: Path) -> Environment:
    return Environment(users=USERS, folder=keys, disable_admission_plugins=(), tracing_config_file=str(file))


async def exported(collector: Received, folder: Path, keys: Path, *, rate: int = 0, user: str = "admin") -> Received:
    """Send all requests to a server that exports to the collector; return what has arrived."""
    async with environment_of(keys, configuration(collector, folder, rate=rate)) as environment:
        collector.spans.clear()
        client = environment.client(user)
        for number, (_, method, path, body, headers) in enumerate(REQUESTS, start=1):
            await send(client, number, method, path, body, headers)
    return collector


async def send(client: Client, number: int, method: str, path: str, body: Any, headers: dict[str, str]) -> None:
    data = b"" if body is None else json.dumps(body).encode()
    sent = {"accept": "application/json", "user-agent": "probe/1.0", "traceparent": traceparent(number), **headers}
    if body is not None:
        sent.setdefault("content-type", "application/json")
    await client.raw(method, path, data, **sent)


def traceparent(number: int) -> str:
    return f"00-{number:032x}-{number:016x}-01"


def hexadecimal(text: str) -> str:
    return base64.b64decode(text).hex()


def tree(spans: list[dict[str, Any]], root: dict[str, Any]) -> dict[str, Any]:
    """Return a span and those below it in the form of the recorded ones."""
    below = [each for each in spans if each.get("parentSpanId") == root["spanId"]]
    below.sort(key=lambda each: int(each["startTimeUnixNano"]))
    return {
        "name": root["name"],
        "kind": root["kind"].removeprefix("SPAN_KIND_"),
        "scope": root["scope"],
        "attributes": attributes(root.get("attributes")),
        "events": [[each["name"], attributes(each.get("attributes"))] for each in root.get("events", ())],
        "spans": [tree(spans, each) for each in below],
    }


def compared(span: dict[str, Any]) -> dict[str, Any]:
    """Return a span without what this server does not have, and without values that differ between two runs."""
    return {
        **{name: span[name] for name in ("name", "kind", "scope")},
        "attributes": shown(span["attributes"]),
        "events": [[name, shown(about)] for name, about in span["events"] if name not in NOT_HERE],
        "spans": [compared(each) for each in span["spans"] if each["name"] not in SPANS_NOT_HERE],
    }


def shown(found: dict[str, Any]) -> dict[str, Any]:
    masked = {"audit-id", "key", *SIZES}
    return {name: "*" if name in masked else value for name, value in found.items() if name not in {*VOLATILE, *GO}}


@pytest.fixture(scope="module")
def spans(collector: Received, tmp_path_factory: pytest.TempPathFactory, keys_folder: Path) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("tracing")
    return [*asyncio.run(exported(collector, folder, keys_folder)).spans]


@pytest.mark.parametrize("number", range(1, len(REQUESTS) + 1), ids=[each[0] for each in REQUESTS])
def test_spans_are_those_of_kube_apiserver(spans: list[dict[str, Any]], number: int) -> None:
    mine = [each for each in spans if hexadecimal(each["traceId"]) == f"{number:032x}"]
    (root,) = [each for each in mine if hexadecimal(each["parentSpanId"]) == f"{number:016x}"]
    recorded = compared(RECORDED[REQUESTS[number - 1][0]])
    if REQUESTS[number - 1][0] == "delete":  # kube-apiserver reads the object from storage first
        handler = recorded["spans"][0]["spans"][0]["spans"][0]["spans"][0]["spans"][0]
        handler["spans"] = [each for each in handler["spans"] if each["name"] != "cacher.Get"]
    assert compared(tree(mine, root)) == recorded


async def test_a_trace_context_of_a_user_who_is_not_trusted_is_a_link(
    collector: Received, tmp_path: Path, keys_folder: Path
) -> None:
    received = await exported(collector, tmp_path, keys_folder, rate=1_000_000, user="alice")
    servers = [each for each in received.spans if each["kind"] == "SPAN_KIND_SERVER"]
    assert len(servers) == len(REQUESTS)
    assert not any("parentSpanId" in each for each in servers)
    first = servers[0]
    (link,) = first["links"]
    assert (hexadecimal(link["traceId"]), hexadecimal(link["spanId"])) == (f"{1:032x}", f"{1:016x}")
    assert hexadecimal(first["traceId"]) != f"{1:032x}"
    recorded = compared(RECORDED["forbidden"])
    assert compared(tree(received.spans, servers[2])) == recorded

    authentications = [each for each in received.spans if each["name"] == "authentication"]
    assert len(authentications) == len(REQUESTS)
    assert not any("parentSpanId" in each for each in authentications)
    assert received.resource["service.name"] == "apiserver"
    assert received.resource["service.instance.id"].startswith("apiserver-")


async def test_without_a_rate_only_traces_of_trusted_clients_are_exported(
    collector: Received, tmp_path: Path, keys_folder: Path
) -> None:
    assert (await exported(collector, tmp_path, keys_folder, user="alice")).spans == []


async def test_without_a_trace_context_the_request_belongs_to_the_trace_of_its_authentication(
    collector: Received, tmp_path: Path, keys_folder: Path
) -> None:
    file = configuration(collector, tmp_path, rate=1_000_000)
    async with environment_of(keys_folder, file) as environment:
        collector.spans.clear()
        await environment.client().get("/version")
    (server,) = [each for each in collector.spans if each["name"] == "GET"]
    (authentication,) = [each for each in collector.spans if each["name"] == "authentication"]
    assert (server["traceId"], server["parentSpanId"]) == (authentication["traceId"], authentication["spanId"])


async def test_webhooks_get_the_trace_context_and_their_spans_are_those_of_kube_apiserver(
    collector: Received, tmp_path: Path, keys_folder: Path, hook_files: CertificateFiles
) -> None:
    file = configuration(collector, tmp_path, rate=0)
    collector.spans.clear()
    async with AdmissionHook(hook_files) as hook, environment_of(keys_folder, file) as environment:
        client = environment.client()
        hook.answers["/mut"] = patch(add("/metadata/labels", {"x": "y"}))
        rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        await configure(client, MUTATING, hook.webhook("/mut", rules=[rule]))
        await configure(client, VALIDATING, hook.webhook("/val", rules=[rule]))
        await send(client, 103, "POST", CONFIG_MAPS, {**PROBE, "metadata": {"name": "hooked"}}, {"baggage": "k=v"})
        unsampled = {"traceparent": f"00-{104:032x}-{104:016x}-00"}
        await send(client, 104, "POST", CONFIG_MAPS, {**PROBE, "metadata": {"name": "h2"}}, unsampled)
        heads = [head.lower() for head in hook.heads]
    mine = [each for each in collector.spans if hexadecimal(each["traceId"]) == f"{103:032x}"]
    (root,) = [each for each in mine if hexadecimal(each["parentSpanId"]) == f"{103:016x}"]
    recorded = RECORDED["create with webhooks"]
    assert without_urls(compared(tree(mine, root))) == without_urls(compared(recorded))
    calls = [each for each in mine if each["name"] == "HTTP POST"]
    for head, call in zip(heads, calls, strict=False):
        assert f"traceparent: 00-{103:032x}-{hexadecimal(call['spanId'])}-01\r\n" in head
        assert "baggage: k=v\r\n" in head
    assert all(f"traceparent: 00-{104:032x}-" in head for head in heads[2:])
    assert not any(hexadecimal(each["traceId"]) == f"{104:032x}" for each in collector.spans)


async def test_the_trace_context_of_a_client_is_passed_on_without_any_export(
    start_control_plane: Any, client_of: Any, hook_files: CertificateFiles
) -> None:
    client = client_of(await start_control_plane())
    async with AdmissionHook(hook_files) as hook:
        await configure(client, VALIDATING, hook.webhook("/val", "configmaps"))
        await send(client, 7, "POST", CONFIG_MAPS, PROBE, {"tracestate": "a=b"})
        await client.post(CONFIG_MAPS, {**PROBE, "metadata": {"name": "other"}})
    first, second = (head.lower() for head in hook.heads)
    assert f"traceparent: {traceparent(7)}\r\n" in first
    assert "tracestate: a=b\r\n" in first
    assert "traceparent" not in second


def without_urls(span: dict[str, Any]) -> dict[str, Any]:
    """Return a span without the attributes that depend on the webhooks' addresses."""
    kept = {name: value for name, value in span["attributes"].items() if name not in {"UID", "url.full", "webhook"}}
    return {**span, "attributes": kept, "spans": [without_urls(each) for each in span["spans"]]}
