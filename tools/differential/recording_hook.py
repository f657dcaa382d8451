"""A webhook that a server asks, which keeps what it was asked.

Its paths are /CASE/NAME/BEHAVIOUR: what it answers depends on the last part alone (`BEHAVIOURS`).
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final

from steersman.server.certificates import ensure_certificates

Response = dict[str, Any]


def _patch(*operations: dict[str, Any], **more: Any) -> Response:
    data = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patch": data, "patchType": "JSONPatch", **more}


def _denied(**status: Any) -> Response:
    return {"allowed": False, "status": status} if status else {"allowed": False}


BEHAVIOURS: Final[Mapping[str, Response | tuple[int, bytes]]] = {
    "allow": {"allowed": True},
    "warn": {"allowed": True, "warnings": ["first", "second\tone", "x" * 300]},
    "annotate": {"allowed": True, "auditAnnotations": {"a": "b"}},
    "deny": _denied(),
    "deny-message": _denied(message="not today"),
    "deny-reason": _denied(reason="Conflict", code=409),
    "deny-ok": _denied(code=200, status="Success", message="fine"),
    "deny-details": _denied(
        message="m", code=422, reason="Invalid", details={"name": "n", "kind": "k", "causes": [{"field": "spec.x"}]}
    ),
    "label": _patch({"op": "add", "path": "/metadata/labels", "value": {"patched": "yes"}}),
    "annotation": _patch({"op": "add", "path": "/metadata/annotations", "value": {"seen": "1"}}),
    "data": _patch({"op": "add", "path": "/data", "value": {"from": "webhook"}}),
    "spec": _patch({"op": "add", "path": "/spec", "value": {"replicas": 2}}),
    "unknown": _patch({"op": "add", "path": "/nonsense", "value": {"a": [1, 2.5, None]}}),
    "rename": _patch({"op": "replace", "path": "/metadata/name", "value": "renamed"}),
    "retype": _patch({"op": "replace", "path": "/kind", "value": "Secret"}),
    "namespace": _patch({"op": "add", "path": "/metadata/namespace", "value": "elsewhere"}),
    "owners": _patch({"op": "add", "path": "/metadata/managedFields", "value": [{"manager": "m"}]}),
    "bad-label": _patch({"op": "add", "path": "/metadata/labels", "value": {"not a key!": "x"}}),
    "bad-type": _patch({"op": "add", "path": "/metadata/labels", "value": "text"}),
    "test": _patch({"op": "test", "path": "/metadata/name", "value": "no such name"}),
    "remove": _patch({"op": "remove", "path": "/metadata/labels"}),
    "nowhere": _patch({"op": "replace", "path": "/a/b/c", "value": 1}),
    "empty-patch": _patch(),
    "patch-denied": {**_patch({"op": "remove", "path": "/metadata/labels"}), "allowed": False},
    "no-type": {"allowed": True, "patch": base64.b64encode(b"[]").decode()},
    "other-type": {"allowed": True, "patch": base64.b64encode(b"[{}]").decode(), "patchType": "Merge"},
    "no-patch": {"allowed": True, "patchType": "JSONPatch"},
    "text-patch": {"allowed": True, "patch": base64.b64encode(b"nonsense").decode(), "patchType": "JSONPatch"},
    "object-patch": {"allowed": True, "patch": base64.b64encode(b'{"a":1}').decode(), "patchType": "JSONPatch"},
    "other-uid": {"allowed": True, "uid": "other"},
    "error": (500, b"oops"),
    "forbidden": (403, b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"go away","code":403}'),
    "nothing": (200, b""),
    "text": (200, b"nonsense"),
    "list": (200, b"[]"),
    "review-of-none": (200, b"{}"),
    "pod": (200, b'{"kind":"Pod","apiVersion":"v1"}'),
    "status": (200, b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"as status","code":400}'),
    "wrong-version": (200, b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2"}'),
    "bad-member": (200, b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"allowed":"yes"}}'),
}
"""By path: an AdmissionResponse, to which the uid is added, or a status of HTTP and a body."""


class RecordingHook:
    """Serves until `close`."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="differential-")
        files = ensure_certificates(Path(self._folder.name), ["127.0.0.1"])
        self.ca_bundle: Final = base64.b64encode(files.ca.read_bytes()).decode()
        self._lock = Lock()
        self._asked: dict[str, list[Any]] = {}
        handler = type("Handler", (_Handler,), {"hook": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.server, files.server_key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url: Final = f"https://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._folder.cleanup()

    def record(self, case: str, behaviour: str, review: Any) -> None:
        with self._lock:
            self._asked.setdefault(case, []).append({"asked": behaviour, **review})

    def taken(self, case: str) -> list[Any]:
        """Return the reviews of a case since the last call, by webhook: some are sent at the same time."""
        with self._lock:
            found = self._asked.pop(case, [])
        return sorted(found, key=lambda review: str(review["asked"]))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hook: RecordingHook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path, _, query = self.path.partition("?")
        _, case, *rest = path.split("/")
        review = json.loads(body)
        behaviour = rest[-1]
        self.hook.record(case, f"{'/'.join(rest)}?{query}", review)
        said = BEHAVIOURS[behaviour]
        code = 200
        if isinstance(said, tuple):
            code, data = said
        else:
            head = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
            data = json.dumps({**head, "response": {"uid": review["request"]["uid"], **said}}).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""
