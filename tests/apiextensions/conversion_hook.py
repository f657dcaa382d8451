"""A conversion webhook, as a real HTTPS server, and a definition that it converts for."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import ssl
from collections.abc import Callable
from typing import Any

from steersman.server.certificates import CertificateFiles
from tests.apiextensions.cluster import definition, version

FIELDS = (("spec", "host", "hostName"), ("spec", "replicas", "size"), ("status", "phase", "state"))
"""Where an object has its fields, and what they are called in v1 (and v3), and in v2."""

Review = dict[str, Any]
Answer = Callable[[Review, Review], Review | bytes | None]
"""From what is to be answered, and the request, to what is answered instead; bytes are a whole HTTP response, or with a
brace before them a body."""


class Hook:
    """Converts, unless `answer` says otherwise."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self.calls: list[tuple[str, list[tuple[str, str]]]] = []
        """The version asked for; version and name of each object."""
        self.reviews: list[Review] = []
        self.heads: list[str] = []
        self.connections = 0
        self.answer: Answer | None = None
        self.held: asyncio.Event | None = None
        self._came = asyncio.Condition()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._files.server, self._files.server_key)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for each in list(self._open):
            each.close()

    async def asked(self, count: int) -> None:
        """Returns once so many requests have come."""
        async with self._came:
            await self._came.wait_for(lambda: len(self.heads) >= count)

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self._files.ca.read_bytes()).decode()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/convert"

    def config(self, **client: Any) -> dict[str, Any]:
        """The `conversion` of a definition."""
        client_config = {"url": self.url, "caBundle": self.ca_bundle, **client}
        return {
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client_config},
        }  # fmt: skip

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                fields = dict(line.lower().split(": ", 1) for line in head.strip().split("\r\n")[1:])
                body = json.loads(await reader.readexactly(int(fields["content-length"])))
                async with self._came:
                    self.heads.append(head)
                    self._came.notify_all()
                if self.held is not None:
                    await self.held.wait()
                writer.write(self._answered(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
        finally:
            self._open.discard(writer)

    def _answered(self, body: Review) -> bytes:
        request = body["request"]
        wanted = request["desiredAPIVersion"]
        self.reviews.append(body)
        named = [(each["apiVersion"].split("/")[1], each["metadata"]["name"]) for each in request["objects"]]
        self.calls.append((wanted.split("/")[1], named))
        objects = [converted(each, wanted) for each in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        answer: Any = {"apiVersion": body["apiVersion"], "kind": body["kind"], "response": response}
        if self.answer is not None:
            answer = self.answer(answer, body)
        if isinstance(answer, bytes):
            if answer.startswith(b"HTTP/"):
                return answer
            data = answer
        else:
            data = json.dumps(answer).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data)


def converted(obj: dict[str, Any], wanted: str) -> dict[str, Any]:
    """The object in another version: its fields are called otherwise."""
    obj = copy.deepcopy(obj)
    was, will = (each.endswith("/v2") for each in (obj["apiVersion"], wanted))
    obj["apiVersion"] = wanted
    for part, old, new in FIELDS:
        source, target = (new, old) if was else (old, new)
        if was != will and source in obj.get(part, {}):
            obj[part][target] = obj[part].pop(source)
    return obj


def http_response(status: int, body: bytes, content_type: str = "text/plain") -> bytes:
    """A whole response of HTTP/1.1."""
    return f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def hosts_version(name: str, *, storage: bool, served: bool = True) -> dict[str, Any]:
    """A version of the definition of hosts, with all that versions may differ in."""
    host, replicas, phase = (each[2 if name == "v2" else 1] for each in FIELDS)
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {
                host: {"type": "string", "maxLength": 20}, replicas: {"type": "integer"}, "note": {"type": "string"},
            }},
            "status": {"type": "object", "properties": {phase: {"type": "string"}}},
        },
    }  # fmt: skip
    scale = {"specReplicasPath": f".spec.{replicas}", "statusReplicasPath": ".status.replicas"}
    return version(
        name, schema, storage=storage, served=served, subresources={"status": {}, "scale": scale},
        additionalPrinterColumns=[{"name": f"Host {name}", "type": "string", "jsonPath": f".spec.{host}"}],
        selectableFields=[{"jsonPath": f".spec.{host}"}],
    )  # fmt: skip


def hosts(conversion: dict[str, Any], storage: str = "v1", versions: tuple[str, ...] = ("v1", "v2")) -> dict[str, Any]:
    """The definition of Foo: a host in `spec.host`, or `spec.hostName` in v2."""
    return definition(*(hosts_version(each, storage=each == storage) for each in versions), conversion=conversion)
