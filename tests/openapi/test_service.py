"""/openapi/v2 and /openapi/v3 of a server, from request to answer."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from steersman.authentication.anonymous import AnonymousAuthenticator
from steersman.authorization.always_allow import AlwaysAllowAuthorizer
from steersman.controlplane.group_order import GroupOrder
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.net.in_process import InProcessClient
from steersman.openapi import descriptions
from steersman.openapi.lazy_service import LazyOpenAPIService
from steersman.openapi.protobuf import encode_document
from steersman.openapi.service import OpenAPIService
from steersman.openapi.v2_messages import DOCUMENT as V2_DOCUMENT
from steersman.openapi.v3_messages import DOCUMENT as V3_DOCUMENT
from steersman.server.config import Config
from steersman.server.discovery import Discovery
from steersman.server.server import Server
from tests.unasked import unasked

RESOURCES = (*KUBE_API, *API_EXTENSIONS, *AGGREGATOR)
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
ETAG = re.compile('"[0-9A-F]{128}"')


async def new_server(resources: Any = RESOURCES) -> tuple[Server, OpenAPIService]:
    config = Config(
        authenticator=AnonymousAuthenticator(), authorizer=AlwaysAllowAuthorizer(), bind_address="127.0.0.1", port=0
    ).complete()
    server = Server(config)
    for resource in resources:
        server.catalogue.put(*unasked(resource))
    GroupOrder(server.catalogue)
    server.prepare_run()
    Discovery(server).install()
    on_first_use = LazyOpenAPIService(server)
    on_first_use.install()
    service = await on_first_use.service()
    server.lifecycle.serving = True
    return server, service


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server, _ = await new_server()
    yield server
    server.config.executor.shutdown()
    server.config.threads.close()


@pytest.fixture
def client(server: Server) -> InProcessClient:
    return InProcessClient(server.handler)


@dataclass
class Answer:
    status: int
    headers: Any
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


async def ask(client: InProcessClient, path: str, method: str = "GET", **headers: str) -> Answer:
    pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
    async with await client.request(method, path, pairs) as response:
        return Answer(response.status, response.headers, await response.read())


async def index_of(client: InProcessClient) -> dict[str, str]:
    answer = await ask(client, "/openapi/v3")
    return {name: entry["serverRelativeURL"] for name, entry in answer.json()["paths"].items()}


async def test_index_lists_what_is_served_with_hashes(client: InProcessClient) -> None:
    answer = await ask(client, "/openapi/v3", accept="text/html")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    paths = (await index_of(client)).items()
    assert {name for name, _ in paths} >= {"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "apis/autoscaling/v2"}
    assert "version" not in dict(paths)
    for name, url in paths:
        assert re.fullmatch(rf"/openapi/v3/{re.escape(name)}\?hash=[0-9A-F]{{128}}", url)
    assert len({url.partition("=")[2] for _, url in paths}) == len(paths)


async def test_an_index_from_the_second_of_a_change_is_not_said_to_be_still_good(server: Server) -> None:
    """kubectl explain right after what made a definition."""
    client = InProcessClient(server.handler)
    before = (await ask(client, "/openapi/v3")).headers["last-modified"]
    server.catalogue.remove("apps", "deployments")
    after = await ask(client, "/openapi/v3", if_modified_since=before)
    assert after.status == 200
    later = format_datetime(parsedate_to_datetime(after.headers["last-modified"]) + timedelta(hours=1), usegmt=True)
    assert (await ask(client, "/openapi/v3", if_modified_since=later)).status == 304


async def test_every_document_is_there_and_described(client: InProcessClient) -> None:
    for url in (await index_of(client)).values():
        answer = await ask(client, url)
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["paths"]
    pod = (await ask(client, "/openapi/v3/api/v1")).json()["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert pod["description"]
    assert pod["properties"]["spec"]["description"]


async def test_document_asked_for_by_its_hash_may_be_kept_for_good(client: InProcessClient) -> None:
    url = (await index_of(client))["apis/apps/v1"]
    answer = await ask(client, url)
    etag = f'"{url.partition("=")[2]}"'
    assert answer.headers["etag"] == etag
    assert ETAG.fullmatch(etag)
    assert answer.headers["cache-control"] == "public, immutable"
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d UTC", answer.headers["expires"])
    assert answer.headers["vary"] == "Accept"
    again = await ask(client, url, if_none_match=etag)
    assert (again.status, again.body, again.headers["cache-control"]) == (304, b"", "public, immutable")
    plain = await ask(client, "/openapi/v3/apis/apps/v1")
    assert plain.body == answer.body
    assert plain.headers["cache-control"] == "no-cache, private"
    assert "expires" not in plain.headers


async def test_outdated_hash_is_sent_to_the_present_one(client: InProcessClient) -> None:
    answer = await ask(client, "/openapi/v3/apis/apps/v1?hash=00")
    assert (answer.status, answer.body) == (301, b"")
    assert answer.headers["location"] == (await index_of(client))["apis/apps/v1"]


@pytest.mark.parametrize("name", ["", "apis/none.example.com/v1", "apis/apps/v2", "apis/apps/v1/", "logs", "version"])
async def test_unknown_document_is_an_empty_404(client: InProcessClient, name: str) -> None:
    answer = await ask(client, f"/openapi/v3/{name}")
    assert (answer.status, answer.body) == (404, b"")
    assert "content-type" not in answer.headers


@pytest.mark.parametrize(
    ("path", "media", "message"),
    [("/openapi/v3/apis/apps/v1", V3_PROTOBUF, V3_DOCUMENT), ("/openapi/v2", V2_PROTOBUF, V2_DOCUMENT)],
)
async def test_protobuf_is_the_same_document(client: InProcessClient, path: str, media: str, message: Any) -> None:
    as_json = await ask(client, path)
    for accept in (media, media.replace(".v1.0+", "@v1.0+")):
        answer = await ask(client, path, accept=accept)
        assert answer.headers["content-type"] == media
        assert answer.headers["etag"] == as_json.headers["etag"]
        assert answer.body == encode_document(message, as_json.json())


@pytest.mark.parametrize("accept", ["text/html", "application/yaml", "application/vnd.kubernetes.protobuf"])
async def test_other_media_types_are_not_acceptable(client: InProcessClient, accept: str) -> None:
    v2, v3 = [await ask(client, path, accept=accept) for path in ("/openapi/v2", "/openapi/v3/apis/apps/v1")]
    assert (v2.status, v2.body, v2.headers.get_all("vary")) == (406, b"", ["Accept-Encoding", "Accept"])
    assert (v3.status, v3.body, v3.headers.get_all("vary")) == (406, b"", ["Accept"])


@pytest.mark.parametrize("accept", ["json", "application/json/x", ";"])
async def test_accept_without_any_media_type_gets_nothing(client: InProcessClient, accept: str) -> None:
    v2, v3 = [await ask(client, path, accept=accept) for path in ("/openapi/v2", "/openapi/v3/apis/apps/v1")]
    assert (v2.status, v3.status, v3.body) == (406, 200, b"")
    assert "vary" not in v3.headers


async def test_v2_is_one_document_for_everything(client: InProcessClient) -> None:
    answer = await ask(client, "/openapi/v2")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers.get_all("vary") == ["Accept-Encoding", "Accept"]
    document = answer.json()
    assert {"/api/v1/pods", "/apis/apps/", "/apis/batch/v1/jobs"} <= document["paths"].keys()
    assert "/version/" not in document["paths"]
    assert list(document) == sorted(document)
    for section in ("definitions", "parameters", "paths"):
        assert list(document[section]) == sorted(document[section])
    again = await ask(client, "/openapi/v2", if_none_match=answer.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    head = await ask(client, "/openapi/v2", "HEAD")
    assert (head.status, head.headers["etag"]) == (200, answer.headers["etag"])


async def test_v2_is_compressed_for_those_who_accept_that(client: InProcessClient) -> None:
    plain = await ask(client, "/openapi/v2")
    answer = await ask(client, "/openapi/v2", accept_encoding="deflate, gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body) == plain.body
    assert len(answer.body) < len(plain.body) / 4
    assert "content-encoding" not in plain.headers


async def test_a_part_of_v2_is_compressed_as_what_it_is_a_part_of(client: InProcessClient) -> None:
    plain = await ask(client, "/openapi/v2")
    part = await ask(client, "/openapi/v2", accept_encoding="gzip", range="bytes=10-5000")
    assert (part.status, gzip.decompress(part.body)) == (206, plain.body[10:5001])
    assert part.headers["content-range"] == f"bytes 10-5000/{len(plain.body)}"
    little = await ask(client, "/openapi/v2", accept_encoding="gzip", range="bytes=0-9")
    assert (little.body, "content-encoding" in little.headers) == (plain.body[:10], False)
    assert "content-encoding" not in (await ask(client, "/openapi/v2", accept_encoding="gzip;q=0")).headers


async def test_server_with_fewer_resources_has_fewer_documents() -> None:
    server, _ = await new_server([each for each in RESOURCES if each.plural in ("configmaps", "deployments")])
    client = InProcessClient(server.handler)
    index = await index_of(client)
    assert set(index) == {"api", "api/v1", "apis", "apis/apps", "apis/apps/v1"}
    core = (await ask(client, index["api/v1"])).json()
    assert {path.split("/")[-1] for path in core["paths"] if "{name}" not in path} == {"", "configmaps"}
    assert "io.k8s.api.core.v1.Pod" not in core["components"]["schemas"]
    everything, _ = await new_server()
    assert (await index_of(InProcessClient(everything.handler)))["api/v1"] != index["api/v1"]
    for each in (server, everything):
        each.config.executor.shutdown()
        each.config.threads.close()


async def test_state_of_a_document_depends_on_where_its_descriptions_come_from(
    client: InProcessClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = await index_of(client)
    (tmp_path / "SOURCE.json").write_text('{"package": "another", "version": "1", "sha256": "0"}')
    monkeypatch.setattr(descriptions, "FOLDER", tmp_path)
    descriptions.digest.cache_clear()
    server, _ = await new_server()
    other = InProcessClient(server.handler)
    without = await index_of(other)
    assert without["api/v1"] != now["api/v1"]
    schemas = (await ask(other, without["api/v1"])).json()["components"]["schemas"]
    assert "description" not in schemas["io.k8s.api.core.v1.Pod"]
    server.config.executor.shutdown()
    server.config.threads.close()
    descriptions.digest.cache_clear()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_kubectl_explains_fields(server: Server, tmp_path: Any) -> None:
    host, port = await server.start()
    try:
        for arguments, expected in (
            (("pod.spec.containers.ports",), "hostPort\t<integer>"),
            (("deployment.spec", "--recursive"), "containerPort\t<integer> -required-"),
            (("hpa.spec", "--api-version=autoscaling/v2"), "maxReplicas\t<integer> -required-"),
            (("ing.spec", "--output=plaintext-openapiv2"), "ingressClassName\t<string>"),
        ):
            process = await asyncio.create_subprocess_exec(
                "kubectl",
                f"--server=http://{host}:{port}",
                f"--cache-dir={tmp_path}",
                "explain",
                *arguments,
                env={"KUBECONFIG": str(tmp_path / "none"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
                executable=shutil.which("kubectl"),
                stdout=-1,
                stderr=-1,
            )
            out, err = await process.communicate()
            assert process.returncode == 0, err.decode()
            assert expected in out.decode()
    finally:
        await server.stop()


async def test_nothing_of_it_is_imported_before_somebody_asks(tmp_path: Path) -> None:
    """A server that is never asked for a document does without."""
    program = (
        "import sys, steersman.controlplane.control_plane\n"
        "print([name for name in sys.modules if name.startswith('steersman.openapi.')])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, cwd=tmp_path
    )
    output, _ = await process.communicate()
    assert output.decode().strip() == "['steersman.openapi.lazy_service']"


async def test_the_first_to_ask_at_the_same_time_are_answered_by_one_service() -> None:
    server, _ = await new_server()
    on_first_use = LazyOpenAPIService(server)
    first, second = await asyncio.gather(on_first_use.service(), on_first_use.service())
    assert first is second
    server.config.executor.shutdown()
