"""Routes of a small server: existing paths and methods, and the answers of the verbs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from steersman.endpoints.filters import reception as filter_module
from steersman.endpoints.installer import Level
from steersman.endpoints.request import Request
from steersman.endpoints.request_info import RequestInfo, Target, read_request_info
from steersman.machinery.identity.action import Action
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer
from steersman.net.message import Request as HttpRequest
from tests.endpoints.small_server import SmallServer

NOTES = "/api/v1/namespaces/ns/configmaps"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
JSON = "application/json"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", NOTES, 200),
        ("GET", f"{NOTES}/", 200),
        ("GET", "/api/v1/configmaps", 200),
        ("GET", f"{NOTES}/missing", 404),
        ("HEAD", NOTES, 405),
        ("HEAD", f"{NOTES}/missing", 405),
        ("OPTIONS", NOTES, 405),
        ("PUT", NOTES, 405),
        ("PATCH", NOTES, 405),
        ("POST", f"{NOTES}/a", 405),
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("GET", "/api/v1/configmaps/a", 404),
        ("GET", f"{NOTES}/a/status", 404),
        ("GET", f"{NOTES}/a/b/c", 404),
        ("GET", "/api/v1/namespaces/ns/others", 404),
        ("GET", "/api/v2/configmaps", 404),
        ("GET", "/apis/other/v1/things", 404),
        ("GET", CLASSES, 200),
        ("GET", "/apis/scheduling.k8s.io/v1/namespaces/ns/priorityclasses", 404),
        ("PUT", f"{CLASSES}/a", 405),
        ("DELETE", CLASSES, 405),
        ("GET", f"{CLASSES}?watch=1", 405),
        ("GET", "/apis/scheduling.k8s.io/v1/watch/priorityclasses", 404),
        ("GET", "/api", 200),
        ("GET", "/api/", 200),
        ("GET", "/api/v1", 200),
        ("GET", "/apis", 200),
        ("GET", "/apis/scheduling.k8s.io", 200),
        ("GET", "/apis/scheduling.k8s.io/v1", 200),
        ("POST", "/api/v1", 405),
        ("GET", "/apis/other", 404),
        ("GET", "/nowhere", 404),
    ],
)
async def test_which_routes_there_are(small: SmallServer, method: str, path: str, status: int) -> None:
    assert (await small.ask(method, path)).status == status


@pytest.mark.parametrize(
    "path",
    ["/api/v1/watch/configmaps", "/api/v1/watch/namespaces/ns/configmaps", "/api/v1/watch/namespaces/ns/configmaps/a"],
)
async def test_the_old_watch_paths_watch(small: SmallServer, path: str) -> None:
    await small.note("a")
    answer = await small.get(f"{path}?timeoutSeconds=-1")
    assert answer.status == 200
    async with await small.open("GET", path) as watch:
        async for piece in watch:
            assert json.loads(piece)["object"]["metadata"]["name"] == "a"
            break


async def test_an_object_from_its_beginning_to_its_end(small: SmallServer) -> None:
    made = await small.note("a", color="red")
    assert list(made) == ["kind", "apiVersion", "metadata", "data"]
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")
    assert (await small.get(f"{NOTES}/a")).json() == made
    changed = await small.ask("PUT", f"{NOTES}/a", {**made, "data": {"color": "blue"}})
    assert changed.status == 200
    assert (await small.ask("PUT", f"{NOTES}/a", made)).status == 409
    patched = await small.ask(
        "PATCH", f"{NOTES}/a", {"data": {"size": "1"}}, content_type="application/merge-patch+json"
    )
    assert patched.json()["data"] == {"color": "blue", "size": "1"}
    deleted = await small.ask("DELETE", f"{NOTES}/a")
    assert deleted.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]},
    }
    missing = await small.get(f"{NOTES}/a", accept=JSON)
    assert (missing.status, missing.json()["message"]) == (404, 'configmaps "a" not found')


async def test_some_kinds_answer_a_delete_with_the_object(small: SmallServer) -> None:
    body = {"metadata": {"name": "high"}, "value": 5}
    made = (await small.ask("POST", CLASSES, body)).json()
    deleted = (await small.ask("DELETE", f"{CLASSES}/high")).json()
    assert (deleted["kind"], deleted["value"]) == ("PriorityClass", 5)
    assert deleted["metadata"]["uid"] == made["metadata"]["uid"]


async def test_lists_are_of_their_kind_and_empty_ones_are_lists_too(small: SmallServer) -> None:
    empty = (await small.get(NOTES)).json()
    assert empty == {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
    await small.note("a", color="red")
    await small.note("b", namespace="other", color="blue")
    everywhere = (await small.get("/api/v1/configmaps")).json()
    assert [item["metadata"]["name"] for item in everywhere["items"]] == ["a", "b"]
    assert "kind" not in everywhere["items"][0]
    red = (await small.get("/api/v1/configmaps?fieldSelector=data.color=red")).json()
    assert [item["metadata"]["name"] for item in red["items"]] == ["a"]


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("fieldSelector=spec.x=1", 400, "field label not supported: spec.x"),
        ("labelSelector=a%20b", 400, None),
        ("limit=many", 400, 'strconv.ParseInt: parsing "many": invalid syntax'),
        ("limit=99999999999999999999", 400, 'strconv.ParseInt: parsing "99999999999999999999": value out of range'),
        ("limit=-1", 200, None),
        ("resourceVersion=x", 400, None),
        ("resourceVersionMatch=Exact", 422, None),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422, None),
        ("sendInitialEvents=true", 422, None),
        ("continue=x", 400, None),
        ("unknown=1", 200, None),
    ],
)
async def test_options_of_a_list_are_checked(small: SmallServer, query: str, status: int, message: str | None) -> None:
    answer = await small.get(f"{NOTES}?{query}", accept=JSON)
    assert answer.status == status, answer.text
    if message is not None:
        assert answer.json()["message"] == message


async def test_pages_can_be_followed(small: SmallServer) -> None:
    for name in "abcde":
        await small.note(name)
    names, token = [], ""
    while True:
        page = (await small.get(f"{NOTES}?limit=2&continue={token}")).json()
        names.append("".join(item["metadata"]["name"] for item in page["items"]))
        token = page["metadata"].get("continue")
        if not token:
            break
    assert names == ["ab", "cd", "e"]


@pytest.mark.parametrize(
    ("body", "content_type", "status", "part"),
    [
        (b"{", JSON, 400, "unexpected end of JSON input"),
        (b"", JSON, 400, None),
        (b'{"metadata":{"name":5}}', JSON, 400, "cannot be handled as a ConfigMap"),
        (b'{"kind":"Pod","apiVersion":"v1"}', JSON, 400, "Pod"),
        (b'{"kind":"ConfigMap","apiVersion":"v2"}', JSON, 400, None),
        (b'{"metadata":{"name":"a","namespace":"other"}}', JSON, 400, "does not match the namespace"),
        (b'{"metadata":{"name":"A_"}}', JSON, 422, "metadata.name"),
        (b'{"metadata":{"name":"a"}}', "text/plain", 415, "the body of the request was in an unknown format"),
        (b"metadata: {name: a}", "application/yaml", 201, None),
        (b'{"metadata":{"name":"a"}}', "", 201, None),
    ],
)
async def test_bodies_are_checked(small: SmallServer, body: bytes, content_type: str, status: int, part: Any) -> None:
    answer = await small.ask("POST", NOTES, body, content_type=content_type, accept=JSON)
    assert answer.status == status, answer.text
    if part is not None:
        assert part in answer.json()["message"]


async def test_a_body_over_the_limit_is_refused(start_server: Callable[..., Awaitable[SmallServer]]) -> None:
    small: SmallServer = await start_server(max_body_bytes=100)
    answer = await small.ask("POST", NOTES, {"metadata": {"name": "a"}, "data": {"k": "x" * 100}}, accept=JSON)
    assert (answer.status, answer.json()["message"]) == (413, "Request entity too large: limit is 100")


async def test_unknown_fields_are_warned_of_or_refused(small: SmallServer) -> None:
    body = {"metadata": {"name": "a"}, "date": {}}
    warned = await small.ask("POST", NOTES, body)
    assert warned.status == 201
    assert warned.headers["warning"] == '299 - "unknown field \\"date\\""'
    body["metadata"]["name"] = "b"
    ignored = await small.ask("POST", f"{NOTES}?fieldValidation=Ignore", body)
    assert (ignored.status, "warning" in ignored.headers) == (201, False)
    strict = await small.ask("POST", f"{NOTES}?fieldValidation=Strict", body, accept=JSON)
    assert strict.status == 400
    assert strict.json()["message"].endswith('strict decoding error: unknown field "date"')


# Representations


async def test_objects_can_be_had_as_yaml_and_indented(small: SmallServer) -> None:
    await small.note("a", color="red")
    yaml = await small.get(f"{NOTES}/a", accept="application/yaml")
    assert yaml.headers["content-type"] == "application/yaml"
    assert yaml.text.startswith("apiVersion: v1\ndata:\n  color: red\nkind: ConfigMap\nmetadata:\n")
    assert '\n  "kind": "ConfigMap"' in (await small.get(f"{NOTES}/a", user_agent="curl/8")).text
    assert '\n  "kind": "ConfigMap"' in (await small.get(f"{NOTES}/a?pretty=true")).text
    assert (await small.get(f"{NOTES}/a", accept="text/html")).status == 406


@pytest.mark.parametrize("accept", ["text/html", f"{JSON};as=Table;v=v1;g=meta.k8s.io"])
async def test_a_refusal_is_told_also_to_who_accepts_no_status(small: SmallServer, accept: str) -> None:
    refused = await small.get("/api/v1/namespaces/ns/nonesuch", accept=accept)
    assert (refused.status, refused.headers["content-type"]) == (404, JSON)
    assert '\n  "kind": "Status"' in refused.text


TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"


async def test_tables_have_the_columns_of_the_resource(small: SmallServer) -> None:
    await small.note("a", color="red", size="1")
    await small.note("b")
    table = (await small.get(NOTES, accept=TABLE)).json()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["a", 2], ["b", 0]]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert table["metadata"]["resourceVersion"] == "3"
    one = (await small.get(f"{NOTES}/a", accept=TABLE)).json()
    assert [row["cells"][0] for row in one["rows"]] == ["a"]
    empty = (await small.get("/api/v1/namespaces/none/configmaps", accept=TABLE)).json()
    assert empty["rows"] == []


@pytest.mark.parametrize(
    ("including", "kind"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap")]
)
async def test_rows_carry_what_is_asked_for(small: SmallServer, including: str, kind: str | None) -> None:
    await small.note("a", color="red")
    [row] = (await small.get(f"{NOTES}?includeObject={including}", accept=TABLE)).json()["rows"]
    assert (row["object"] and row["object"]["kind"]) == kind
    refused = await small.get(f"{NOTES}?includeObject=All", accept=TABLE)
    assert refused.status == 400


async def test_metadata_alone_can_be_had(small: SmallServer) -> None:
    await small.note("a", color="red")
    one = (await small.get(f"{NOTES}/a", accept=f"{JSON};as=PartialObjectMetadata;v=v1;g=meta.k8s.io")).json()
    assert (one["kind"], "data" in one) == ("PartialObjectMetadata", False)
    many = (await small.get(NOTES, accept=f"{JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")).json()
    assert many["kind"] == "PartialObjectMetadataList"
    assert [item["kind"] for item in many["items"]] == ["PartialObjectMetadata"]
    for path, kind in ((NOTES, "PartialObjectMetadata"), (f"{NOTES}/a", "PartialObjectMetadataList")):
        assert (await small.get(path, accept=f"{JSON};as={kind};v=v1;g=meta.k8s.io")).status == 406


@pytest.mark.parametrize("size", [200_000, 6_000_000])
async def test_large_answers_are_compressed_for_those_who_take_it(small: SmallServer, size: int) -> None:
    each = 500_000
    for number in range(max(1, size // each)):
        await small.note(f"a{number}", text="x" * min(size, each))
    plain = await small.get(NOTES, accept_encoding="identity")
    packed = await small.get(NOTES, accept_encoding="gzip")
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in packed.headers["vary"]
    assert len(packed.body) < len(plain.body) / 10
    assert gzip.decompress(packed.body) == plain.body


@pytest.mark.parametrize("accept", [JSON, "application/yaml", "application/vnd.kubernetes.protobuf"])
async def test_one_large_object_is_compressed_whatever_is_done_with_it(small: SmallServer, accept: str) -> None:
    note = {"metadata": {"name": "big"}, "data": {"text": "x" * 200_000}}
    made = await small.ask("POST", NOTES, note, accept=accept, accept_encoding="gzip")
    assert (made.status, made.headers["content-encoding"]) == (201, "gzip")
    plain = await small.get(f"{NOTES}/big", accept=accept)
    packed = await small.get(f"{NOTES}/big", accept=accept, accept_encoding="gzip")
    assert "content-encoding" not in plain.headers
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(packed.body) == plain.body
    refused = await small.get(f"{NOTES}/big", accept=accept, accept_encoding="gzip;q=0, identity")
    assert refused.body == plain.body


async def test_a_large_status_is_compressed(small: SmallServer) -> None:
    answer = await small.get(f"{NOTES}/{'n' * 140_000}", accept_encoding="gzip")
    assert (answer.status, answer.headers["content-encoding"]) == (404, "gzip")
    assert gzip.decompress(answer.body).startswith(b'{"kind":"Status"')


async def test_of_repeated_fields_the_first_counts(small: SmallServer) -> None:
    for first, second in ((JSON, "application/yaml"), ("application/yaml", JSON)):
        response = await small.client.request("GET", NOTES, [("accept", first), ("accept", second)], b"")
        await response.read()
        assert response.headers["content-type"] == first


@pytest.mark.parametrize(
    ("path", "media", "status"),
    [
        ("/api", "text/plain", 415),
        ("/api/v1", "text/plain", 415),
        ("/api/v1", "text/plain, application/yaml;a=b", 406),
        ("/api/v1", "*/*", 406),
        ("/apis", "text/plain", 406),
        (NOTES, "text/plain", 406),
    ],
)
async def test_a_media_type_that_a_web_service_does_not_read_is_refused_before_one_it_does_not_write(
    small: SmallServer, path: str, media: str, status: int
) -> None:
    assert (await small.get(path, content_type=media, accept="text/none")).status == status


async def test_the_media_type_of_a_patch_is_refused_before_that_of_the_answer(small: SmallServer) -> None:
    answer = await small.ask("PATCH", f"{NOTES}/a", {}, content_type="text/plain", accept="text/none")
    assert (answer.status, answer.json()["message"]) == (415, "415: Unsupported Media Type")


async def test_small_answers_are_not_compressed(small: SmallServer) -> None:
    await small.note("a")
    assert "content-encoding" not in (await small.get(NOTES, accept_encoding="gzip")).headers


# Discovery


async def test_discovery_tells_what_is_served(small: SmallServer) -> None:
    assert (await small.get("/api")).json()["versions"] == ["v1"]
    groups = (await small.get("/apis")).json()["groups"]
    assert [group["name"] for group in groups] == ["scheduling.k8s.io"]
    [resource] = (await small.get("/api/v1")).json()["resources"]
    assert (resource["name"], resource["namespaced"], resource["shortNames"]) == ("configmaps", True, ["cm"])
    [resource] = (await small.get("/apis/scheduling.k8s.io/v1")).json()["resources"]
    assert resource["verbs"] == ["create", "delete", "get", "list"]


async def test_aggregated_discovery_is_sent_once(small: SmallServer) -> None:
    accept = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    first = await small.get("/apis", accept=accept)
    assert first.json()["kind"] == "APIGroupDiscoveryList"
    again = await small.get("/apis", accept=accept, if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")


# The authorized action is the performed one


@pytest.mark.parametrize(
    "judged",
    [
        {"namespace": "other"},
        {"name": "b"},
        {"resource": "secrets"},
        {"subresource": "status"},
        {"group": "apps"},
        {"version": "v2"},
        {"verb": "list"},
        {"target": Target("other", "a")},
        {"target": Target("ns", "b")},
        {"target": Target("ns", "a", "status")},
    ],
)
async def test_what_was_not_judged_is_not_done(
    small: SmallServer, monkeypatch: pytest.MonkeyPatch, judged: dict[str, Any]
) -> None:
    await small.note("a")

    def differently(*request: str) -> RequestInfo:
        info = read_request_info(*request)
        if "target" in judged:
            info.target = judged["target"]
        else:
            info.action = msgspec.structs.replace(info.action, **judged)
        return info

    monkeypatch.setattr(filter_module, "request_info", differently)
    answer = await small.get(f"{NOTES}/a", accept=JSON)
    assert answer.status == 500
    assert answer.json()["message"] == f"what was authorized for '{NOTES}/a' is not what its route does"
    assert "color" not in answer.text


async def test_a_handler_knows_nothing_of_where_to_act_before_its_route_has_looked(small: SmallServer) -> None:
    http = HttpRequest("GET", f"{NOTES}/a", "", Headers.from_pairs([]), EMPTY_BODY, Peer())
    request = Request(http)
    assert request.action == Action()
    request.info = read_request_info("GET", http.path, "")
    route = small.server.catalogue.routes[request.info.template]
    assert (route.level, route.resource) == (Level.OBJECT, "configmaps")
    route.handler(request)
    assert request.action == Action("get", "", "v1", "configmaps", namespace="ns", name="a")
