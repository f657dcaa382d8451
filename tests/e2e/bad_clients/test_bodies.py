"""Bodies made to cost the reader dear: nesting, aliases, numbers, broken text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.testing import ServerProcess
from tests.e2e.bad_clients.bad_client import memory_grows_at_most, others_are_served

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
JSON = "application/json"
YAML = "application/yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

DEPTH = 10_000
DEEP = {
    "lists": b"[" * DEPTH + b"]" * DEPTH,
    "lists that do not end": b"[" * DEPTH,
    "members": b'{"a":' * DEPTH + b"1" + b"}" * DEPTH,
    "labels": b'{"metadata":{"name":"deep","labels":' + b'{"a":' * DEPTH + b'"b"' + b"}" * (DEPTH + 2),
    "unknown members": b'{"metadata":{"name":"deep"},"odd":' + b'{"a":' * DEPTH + b"1" + b"}" * (DEPTH + 1),
}


def ask(server: ServerProcess, method: str, path: str, body: bytes, media: str) -> tuple[int, dict[str, Any]]:
    with server.client() as client:
        status, answer = client.request(method, path, body, {"Content-Type": media})
    return status, json.loads(answer)


@pytest.mark.parametrize("media", [JSON, YAML])
@pytest.mark.parametrize("kind", DEEP)
def test_ten_thousand_levels_are_refused(server: ServerProcess, kind: str, media: str) -> None:
    with others_are_served(server):
        status, told = ask(server, "POST", CONFIGMAPS, DEEP[kind], media)
    assert (status, told["kind"]) == (400, "Status")


@pytest.mark.parametrize("media", [MERGE, JSON_PATCH, STRATEGIC, APPLY])
@pytest.mark.parametrize("kind", ["lists", "members"])
def test_ten_thousand_levels_in_a_patch_are_refused(server: ServerProcess, kind: str, media: str) -> None:
    with others_are_served(server):
        status, told = ask(server, "PATCH", f"{CONFIGMAPS}/kube-root-ca.crt?fieldManager=m", DEEP[kind], media)
    assert 400 <= status < 500
    assert told["kind"] == "Status"


def bomb(width: int, levels: int) -> bytes:
    """Return YAML of a few hundred bytes that stands for width ** levels values."""
    lines = ['a0: &a0 ["' + "x" * 10 + '"]']
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return ("metadata: {name: bomb}\n" + "\n".join(lines) + "\n").encode()


BOMBS = {
    "billion laughs": bomb(10, 10),
    "wide": bomb(1000, 3),
    "merge keys": b"metadata: {name: bomb}\na: &a {x: 1}\n"
    + b"".join(b"b%d: &b%d {<<: [%s]}\n" % (n, n, b", ".join([b"*a"] * 500)) for n in range(200)),
    "many aliases": b"metadata: {name: bomb}\na: &a {b: c}\ndata: [" + b"*a, " * 200_000 + b"*a]\n",
    "recursive": b"metadata: {name: bomb}\na: &a [*a]\n",
    "deep flow": b"a: " + b"[" * 100_000,
    "deep block": b"".join(b" " * n + b"a:\n" for n in range(1500)),
    "many documents": b"---\n{}\n" * 100_000,
}


@pytest.mark.parametrize("media", [YAML, APPLY])
@pytest.mark.parametrize("kind", BOMBS)
def test_yaml_bombs_cost_neither_time_nor_memory(server: ServerProcess, kind: str, media: str) -> None:
    method, path = ("POST", CONFIGMAPS) if media == YAML else ("PATCH", f"{CONFIGMAPS}/bomb?fieldManager=m")
    with others_are_served(server), memory_grows_at_most(server, 150):
        status, told = ask(server, method, path, BOMBS[kind], media)
    assert 400 <= status < 500, told
    assert told["kind"] == "Status"


COSTLY = {
    "a number of a million digits": b'{"metadata":{"name":"a"},"odd":' + b"9" * 1_000_000 + b"}",
    "an exponent beyond all bounds": b'{"metadata":{"name":"a"},"odd":1e999999999}',
    "a quantity beyond all bounds": b'{"kind":"ConfigMap","metadata":{"name":"a","generation":1e400}}',
    "a million members": b'{"metadata":{"name":"a","odd":{' + b",".join(b'"%d":1' % n for n in range(200_000)) + b"}}}",
    "the same member again and again": b'{"metadata":{"name":"a"},"data":{' + b'"a":"b",' * 200_000 + b'"a":"b"}}',
    "a million empty lists": b'{"metadata":{"name":"a"},"odd":[' + b"[]," * 900_000 + b"[]]}",
    "unpaired surrogates": b'{"metadata":{"name":"a"},"data":{"a":"\\ud800"}}',
}


@pytest.mark.parametrize("kind", COSTLY)
def test_costly_json_is_answered_soon(server: ServerProcess, kind: str) -> None:
    with others_are_served(server), memory_grows_at_most(server, 150):
        status, told = ask(server, "POST", f"{CONFIGMAPS}?dryRun=All&fieldValidation=Warn", COSTLY[kind], JSON)
    assert status in (201, 400, 413, 422), told


def test_a_number_of_a_million_digits_in_yaml_is_answered_soon(server: ServerProcess) -> None:
    body = b"metadata: {name: long}\nodd: " + b"9" * 1_000_000 + b"\n"
    with others_are_served(server):
        status, told = ask(server, "POST", f"{CONFIGMAPS}?dryRun=All", body, YAML)
    assert status in (201, 400), told


BROKEN = {
    "utf-8 in a value": b'{"metadata":{"name":"a"},"data":{"a":"\xff\xfe"}}',
    "utf-8 in a name": b'{"metadata":{"name":"\xc3\x28"}}',
    "an overlong NUL": b'{"metadata":{"name":"a\xc0\x80"}}',
    "utf-16": '{"metadata":{"name":"a"}}'.encode("utf-16"),
    "a NUL": b'{"metadata":{"name":"a\x00b"}}',
    "nothing": b"",
    "half an object": b'{"metadata":{"name":',
    "a text": b'"hello"',
    "null": b"null",
}


@pytest.mark.parametrize("media", [JSON, YAML])
@pytest.mark.parametrize("kind", BROKEN)
def test_broken_text_is_answered_in_words(server: ServerProcess, kind: str, media: str) -> None:
    status, told = ask(server, "POST", f"{CONFIGMAPS}?dryRun=All", BROKEN[kind], media)
    assert status in (201, 400, 422), told
    json.dumps(told).encode()


PROTOBUFS = {
    "no magic": b"\x00\x01\x02\x03",
    "only the magic": b"k8s\x00",
    "a length beyond the end": b"k8s\x00\x0a\xff\xff\xff\xff\x0f",
    "a varint without end": b"k8s\x00" + b"\xff" * 1000,
    "nested without end": b"k8s\x00" + b"\x0a\x80\x80\x01" * 20_000,
    "random": b"k8s\x00" + bytes(range(256)) * 100,
}


@pytest.mark.parametrize("kind", PROTOBUFS)
def test_broken_protobuf_is_refused(server: ServerProcess, kind: str) -> None:
    with others_are_served(server):
        status, told = ask(server, "POST", f"{CONFIGMAPS}?dryRun=All", PROTOBUFS[kind], PROTOBUF)
    assert 400 <= status < 500, told


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/%ff%fe/configmaps",
        "/api/v1/namespaces/default/configmaps/%00",
        "/api/v1/configmaps?labelSelector=%ff",
        "/api/v1/configmaps?labelSelector=" + "a%20in%20(" + "b," * 20_000 + "b)",
        "/api/v1/configmaps?fieldSelector=" + "metadata.name=a," * 5_000 + "metadata.name=a",
        "/api/v1/configmaps?continue=" + "A" * 100_000,
        "/api/v1/configmaps?limit=" + "9" * 10_000,
        "/api/v1/configmaps?resourceVersion=" + "9" * 10_000,
        "/" + "a/" * 100_000,
        "/api/v1/" + "../" * 10_000,
    ],
    ids=lambda path: path[:60],
)
def test_odd_paths_and_parameters_are_answered(server: ServerProcess, path: str) -> None:
    with others_are_served(server), server.client() as client:
        status, answer = client.request("GET", path)
    assert status < 500, answer[:500]


def test_the_server_has_nothing_to_report_of_all_this(server: ServerProcess) -> None:
    assert "Traceback" not in server.errors.read_text()
