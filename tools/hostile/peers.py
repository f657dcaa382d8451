"""Webhooks and aggregated servers that are dead, or lie, or are very many.

One server of ours answers for all of them, by the path it is asked for. What it says of itself as an aggregated server
is what the case that is played has made.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from steersman.server.certificates import ensure_certificates

from .case import ADMIN, Case, Request, Target, numbered, repeated
from .policies import CONFIGURATIONS, LABEL, cleared, written

Plain = dict[str, Any]

_JSON: Final = (("Content-Type", "application/json"), ("Connection", "close"))
_SECONDS: Final = 20.0
"""Seconds for which one connection is answered."""
_GROUP: Final = "hostile-peers.example.com"
_ROOT: Final = f"/apis/{_GROUP}/v1"
_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
_DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_ANSWERED: Final = 10.0
ASKED_FOR_DOCUMENTS: Final = 3.0
"""Seconds after which an aggregated server has been asked for its documents."""


def _response(body: bytes | Plain, kind: str = "application/json", status: int = 200) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def _verdict(uid: str, **more: Any) -> bytes:
    response = {"uid": uid, "allowed": True, **more}
    return _response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


def _patched(uid: str, operations: list[Plain]) -> bytes:
    return _verdict(uid, patchType="JSONPatch", patch=base64.b64encode(json.dumps(operations).encode()).decode())


def _endless(head: bytes, piece: bytes) -> Iterator[bytes]:
    yield head
    while True:
        yield piece


def _slowly(data: bytes) -> Iterator[bytes]:
    for each in data:
        yield bytes([each])
        time.sleep(1)


Answer = Callable[[str, int], bytes | Iterator[bytes]]
"""Makes the answer to a review with this uid, of about so many bytes."""
_CHUNKED: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

ANSWERS: Final[Mapping[str, Answer]] = {
    "ok": lambda uid, size: _verdict(uid),
    "hang": lambda uid, size: _slowly(b""),
    "byte-a-second": lambda uid, size: _slowly(_verdict(uid)),
    "close": lambda uid, size: b"",
    "cut-off": lambda uid, size: _verdict(uid)[:-5],
    "garbage": lambda uid, size: bytes(range(256)) * (size // 256),
    "long": lambda uid, size: _response(b" " * size + b"{}"),
    "endless": lambda uid, size: _endless(_CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n"),
    "endless-head": lambda uid, size: _endless(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n" * 1000),
    "endless-field": lambda uid, size: _endless(b"HTTP/1.1 200 OK\r\na: ", b"x" * 65536),
    "endless-interim": lambda uid, size: _endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000),
    "tiny-chunks": lambda uid, size: _CHUNKED + b"1\r\nx\r\n" * (size // 6) + b"0\r\n\r\n",
    "bad-chunks": lambda uid, size: _CHUNKED + b"fffffffffffffffff\r\n" * (size // 20),
    "redirects": lambda uid, size: b"HTTP/1.1 307 X\r\nLocation: /redirects\r\nContent-Length: 0\r\n\r\n",
    "again": lambda uid, size: b"HTTP/1.1 503 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
    "deep": lambda uid, size: _response(b"[" * size),
    "warnings": lambda uid, size: _verdict(uid, warnings=numbered("w{i}", size)),
    "long-warning": lambda uid, size: _verdict(uid, warnings=[repeated("x", size)]),
    "denial": lambda uid, size: _verdict(uid, allowed=False, status={"message": repeated("x", size), "code": 403}),
    "causes": lambda uid, size: _verdict(
        uid, allowed=False, status={"details": {"causes": [{"message": each} for each in numbered("m{i}", size // 4)]}}
    ),
    "annotations": lambda uid, size: _verdict(uid, auditAnnotations=dict.fromkeys(numbered("k{i}", size // 2), "v")),
    "operations": lambda uid, size: _patched(uid, [{"op": "add", "path": "/data/a", "value": "b"}] * (size // 60)),
    "copies": lambda uid, size: _patched(
        uid,
        [{"op": "add", "path": "/x", "value": ["x" * 10]}]
        + [{"op": "copy", "from": "/x", "path": "/x/-"}] * (size // 1000),
    ),
    "values": lambda uid, size: _patched(
        uid, [{"op": "add", "path": "/data", "value": dict.fromkeys(numbered("k{i}", size // 4), "v")}]
    ),
    "inserts": lambda uid, size: _patched(
        uid,
        [{"op": "add", "path": "/metadata/finalizers", "value": []}]
        + [{"op": "add", "path": "/metadata/finalizers/0", "value": "a/b"}] * (size // 80),
    ),
    "long-path": lambda uid, size: _patched(uid, [{"op": "add", "path": repeated("/a", size // 2), "value": ""}]),
}


class Peer:
    """The server: a thread for each connection. `documents` are what it says by path; `size` is that of the case."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hostile-peer-")
        files = ensure_certificates(Path(self._folder.name), ["127.0.0.1"])
        self.authority: Final = base64.b64encode(files.ca.read_bytes()).decode()
        self._context: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(files.server, files.server_key)
        self._socket: Final = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port: Final[int] = self._socket.getsockname()[1]
        self.size = 0
        self.documents: dict[str, bytes] = {}
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, plain: socket.socket) -> None:
        until = time.monotonic() + _SECONDS
        with suppress(OSError, ValueError, LookupError), plain:
            plain.settimeout(_SECONDS)
            with (
                self._context.wrap_socket(plain, server_side=True) as connection,
                connection.makefile("rb") as reader,
            ):
                while time.monotonic() < until and (answer := self._said(reader)) is not None:
                    for piece in [answer] if isinstance(answer, bytes) else answer:
                        connection.sendall(piece)
                        if time.monotonic() > until:
                            return

    def _said(self, reader: Any) -> bytes | Iterator[bytes] | None:
        """Return the answer to the next request, None if there is no request."""
        line = reader.readline()
        if not line:
            return None
        target, length, is_chunked = line.decode("latin1").split(" ")[1].partition("?")[0], 0, False
        while line := reader.readline().strip().lower():
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
            is_chunked = is_chunked or line == b"transfer-encoding: chunked"
        data = b""
        while is_chunked and (size := int(reader.readline(), 16) + 2) > 2:
            data += reader.read(size)[:-2]
        if is_chunked:
            reader.readline()
        data += reader.read(length)
        found = self.documents.get(target)
        if found is not None:
            return found
        answer = ANSWERS.get(target.split("/")[1])
        if answer is None or not data:
            return _response(b"{}", status=404)
        said = answer(json.loads(data)["request"]["uid"], self.size)
        return said or None


@cache
def peer() -> Peer:
    """The one there is, which begins with the first case that needs it."""
    return Peer()


# Webhooks


def _hook(path: str, **more: Any) -> Plain:
    config = {"url": f"https://127.0.0.1:{peer().port}/{path}", "caBundle": peer().authority}
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    return {
        "name": "hostile.example.com",
        "clientConfig": config,
        "rules": [rule],
        "sideEffects": "None",
        "objectSelector": {"matchLabels": LABEL},
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
        **more,
    }


def _hooks(size: int, each_bytes: int, make: Callable[[str], Plain]) -> list[Plain]:
    return [{**make(name), "name": f"{name}.example.com"} for name in numbered("h{i}", max(size // each_bytes, 1) * 6)]


def _without_authority(name: str) -> Plain:
    return _hook("ok", clientConfig={"url": f"https://127.0.0.1:{peer().port}/ok/{name}"}, failurePolicy="Ignore")


Configuration = Callable[[int], list[Plain]]
CONFIGURED: Final[Mapping[str, Configuration]] = {
    "many": lambda size: _hooks(size, 2500, lambda name: _hook("ok")),
    "many-places": lambda size: _hooks(size, 2500, lambda name: _hook(f"ok/{name}")),
    "many-without-authority": lambda size: _hooks(size, 1000, _without_authority),
    "many-that-hang": lambda size: _hooks(size, 2500, lambda name: _hook(f"hang/{name}", timeoutSeconds=2)),
    "rules": lambda size: [
        _hook("ok", rules=[{**_hook("ok")["rules"][0], "resources": [each]} for each in numbered("r{i}", size // 20)])
    ],
    "selector": lambda size: [
        _hook(
            "ok",
            objectSelector={
                "matchLabels": LABEL,
                "matchExpressions": [
                    {"key": each, "operator": "DoesNotExist"} for each in numbered("k{i}", size // 10)
                ],
            },
        )
    ],
    "conditions": lambda size: _hooks(
        size,
        4000,
        lambda name: _hook(
            "ok",
            matchConditions=[
                {"name": f"c{each}", "expression": "lists.range(400).all(x, x >= 0) && false"} for each in range(10)
            ],
        ),
    ),
    "versions": lambda size: [_hook("ok", admissionReviewVersions=["v1", *numbered("v{i}", size)])],
}


def _configured(kind: str, hooks: list[Plain]) -> Request:
    body = json.dumps({"metadata": {"name": "hostile"}, "webhooks": hooks}).encode()
    return Request("POST", f"{CONFIGURATIONS}/{kind}webhookconfigurations", _JSON, body, ADMIN)


def _asked(kind: str, make: Configuration) -> Callable[[int, Target], Request | None]:
    """A write that such webhooks are asked about."""

    def case(size: int, target: Target) -> Request | None:
        cleared(target)
        peer().size = size
        return written() if target.ask(_configured(kind, make(size)))[0] == 201 else None

    return case


def _made(make: Configuration) -> Callable[[int, Target], Request]:
    def case(size: int, target: Target) -> Request:
        cleared(target)
        return _configured("validating", make(size))

    return case


def _answering(name: str) -> Configuration:
    return lambda size: [_hook(name)]


def webhooks() -> Iterator[Case]:
    """Configurations, as they are written and as they are asked; and what one webhook may say."""
    for name, make in CONFIGURED.items():
        yield Case(f"webhooks/{name}/create", _made(make), group=name)
        for kind in ("validating", "mutating"):
            yield Case(f"webhooks/{name}/{kind}", _asked(kind, make), group=name)
    for name in ANSWERS:
        for kind in ("validating", "mutating"):
            yield Case(f"webhooks/answers-{name}/{kind}", _asked(kind, _answering(name)), group=name)


# Aggregated servers


def _discovery(resources: list[Plain]) -> bytes:
    group = {"metadata": {"name": _GROUP}, "versions": [{"version": "v1", "resources": resources}]}
    return _response({"kind": "APIGroupDiscoveryList", "items": [group]}, _DISCOVERY)


def _told(data: bytes) -> bytes:
    return _response(data, _DISCOVERY)


def _v2(definitions: Any, operation: Any = None) -> bytes:
    responses = {"200": {"description": "", "schema": {"$ref": "#/definitions/hostile.Thing"}}}
    path = {"get": {"responses": responses} if operation is None else operation}
    return _response({"swagger": "2.0", "paths": {f"{_ROOT}/things": path}, "definitions": definitions})


def _thing(**schema: Any) -> Plain:
    return {"hostile.Thing": schema}


def _resource(name: str, **more: Any) -> Plain:
    return {"resource": name, "scope": "Namespaced", "responseKind": {"kind": "A"}, "verbs": ["get"], **more}


Documents = Callable[[int], dict[str, bytes]]
_DOCUMENT: Final = {"discovery": "/apis", "openapi-v2": "/openapi/v2", "openapi-v3": "/openapi/v3"}

DOCUMENTS: Final[Mapping[str, Callable[[int], bytes]]] = {
    "discovery/resources": lambda size: _discovery([_resource(each) for each in numbered("r{i}", size // 12)]),
    "discovery/short-names": lambda size: _discovery([_resource("a", shortNames=numbered("s{i}", size))]),
    "discovery/groups": lambda size: _response(
        {"items": [{"metadata": {"name": each}, "versions": []} for each in numbered("g{i}", size // 5)]}, _DISCOVERY
    ),
    "discovery/deep": lambda size: _told(b'{"items": [' + b"[" * size),
    "discovery/garbage": lambda size: _told(bytes(range(256)) * (size // 256)),
    "discovery/long": lambda size: _told(b" " * size + b"{}"),
    "openapi-v2/definitions": lambda size: _v2(
        _thing(type="object") | {each: {"type": "object"} for each in numbered("d{i}", size // 5)}
    ),
    "openapi-v2/properties": lambda size: _v2(
        _thing(properties={each: {"type": "string"} for each in numbered("p{i}", size // 5)})
    ),
    "openapi-v2/deep": lambda size: _v2(_thing(x="deep")).replace(b'"deep"', b'{"a":' * min(size // 6, 5000)),
    "openapi-v2/circle": lambda size: _v2(_thing(**{"$ref": "#/definitions/hostile.Thing"})),
    "openapi-v2/references": lambda size: _v2(
        _thing(properties={each: {"$ref": f"#/definitions/{each}"} for each in numbered("p{i}", size // 8)})
    ),
    "openapi-v2/names-of-others": lambda size: _v2(
        _thing(type="object")
        | {f"io.k8s.api.core.v1.Pod{each}": {"type": "string"} for each in ["", *numbered("_v{i}", size // 10)]}
    ),
    "openapi-v2/types-that-lie": lambda size: _v2(_thing(type=5, properties=[], required={"a": 1})),
    "openapi-v2/operations-that-lie": lambda size: _v2(_thing(), {"responses": "x", "parameters": 5}),
    "openapi-v3/many": lambda size: _response(
        {"paths": {f"apis/{each}/v1": {"serverRelativeURL": "/a"} for each in numbered("g{i}", size // 8)}}
    ),
    "openapi-v3/deep": lambda size: _response(b'{"paths": {"a": ' + b"[" * size),
}
"""Documents of a lying aggregated server, by document and fault."""

_READ: Final = {
    "discovery": (("/apis", _DISCOVERY),),
    "openapi-v2": (("/openapi/v2", "application/json"), ("/openapi/v2", _V2_PROTOBUF)),
    "openapi-v3": (("/openapi/v3", "application/json"),),
}
"""Paths that users read where such a document has become a part of the answer."""


def _published(target: Target, name: str, make: Callable[[int], bytes], size: int) -> bool:
    """Has an APIService lead to the peer, which says this; whether it is found to answer."""
    service, path = f"{_SERVICES}/v1.{_GROUP}", "/api/v1/namespaces/default/services"
    target.ask(Request("DELETE", service, (("Connection", "close"),), token=ADMIN))
    listed = _response({"kind": "APIResourceList", "groupVersion": f"{_GROUP}/v1", "resources": []})
    peer().documents = {_ROOT: listed, _DOCUMENT[name.partition("/")[0]]: make(size)}
    place: Plain = {"metadata": {"name": "hostile"}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}
    target.ask(Request("POST", path, _JSON, json.dumps(place).encode(), ADMIN))
    spec = {
        "group": _GROUP,
        "version": "v1",
        "groupPriorityMinimum": 1,
        "versionPriority": 1,
        "insecureSkipTLSVerify": True,
        "service": {"name": "hostile", "namespace": "default", "port": peer().port},
    }
    body = json.dumps({"metadata": {"name": f"v1.{_GROUP}"}, "spec": spec}).encode()
    target.ask(Request("POST", _SERVICES, _JSON, body, ADMIN))
    until = time.monotonic() + _ANSWERED
    while time.monotonic() < until:
        _, found = target.ask(Request("GET", service, (("Connection", "close"),), token=ADMIN))
        if b'"reason":"Passed"' in found:
            time.sleep(ASKED_FOR_DOCUMENTS)
            return True
        time.sleep(0.1)
    return False


def _reading(
    name: str, make: Callable[[int], bytes], path: str, accept: str
) -> Callable[[int, Target], Request | None]:
    def case(size: int, target: Target) -> Request | None:
        if not _published(target, name, make, size):
            return None
        return Request("GET", path, (("Accept", accept),), token=ADMIN)

    return case


def aggregated() -> Iterator[Case]:
    """Yield cases that read answers made of a lying aggregated server's documents."""
    for name, make in DOCUMENTS.items():
        for path, accept in _READ[name.partition("/")[0]]:
            form = "protobuf" if "protobuf" in accept else "json"
            yield Case(f"aggregated/{name}/{form}", _reading(name, make, path, accept), group=name)
