"""HTTPS servers with scripted answers, for the `serve` step of a scenario: webhooks, aggregated servers, issuers."""

from __future__ import annotations

import base64
import datetime
import http.server
import ipaddress
import json
import socket
import ssl
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.conformance.scenario_answers import dig

_KEPT_HEADERS: Final = ("content-type", "accept", "user-agent")
_NOT_FOUND: Final = {"code": 404, "body": "404 page not found"}
_NO_CASE: Final = {"code": 404, "body": "no case"}


class HookServer(http.server.ThreadingHTTPServer):
    """Server that answers by `script`, and keeps the requests in `seen`."""

    daemon_threads = True

    pem = ""
    """Certificate of the server in PEM, by which clients verify the server."""

    def __init__(self, script: dict[str, Any]) -> None:
        super().__init__(("", 0), _Hook)
        self.script = script
        self.seen: list[dict[str, Any]] = []

    def handle_error(self, *_: object) -> None:
        """Ignore errors: a client that hangs up, or that does not trust the certificate, is part of the scenario."""


class _Hook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HookServer

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body: Any = json.loads(data) if data.startswith(b"{") else data.decode("utf-8", "backslashreplace")
        headers = {
            name.lower(): value
            for name, value in self.headers.items()
            if name.lower() in _KEPT_HEADERS or name.startswith("X-Remote-")
        }
        self.server.seen.append({"request": f"{self.command} {self.path}", "body": body, "headers": headers})
        script = self.server.script.get(self.path.partition("?")[0], _NOT_FOUND)
        if isinstance(script, list):
            script = next((each for each in script if _is_about(each, body)), _NO_CASE)
        time.sleep(script.get("sleep", 0))
        answer = script["body"] if "body" in script else _review(script, body)
        data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(script.get("code", 200))
        fields = {"Content-Type": "application/json", "Content-Length": len(data)} | script.get("headers", {})
        for name, value in fields.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

    def log_message(self, *_: object) -> None:
        """Log nothing: `seen` has the requests."""


def _is_about(case: dict[str, Any], body: Any) -> bool:
    """Return True if the `if` condition of a case holds for the body of a request."""
    return all(dig(body, path) == value for path, value in case.get("if", {}).items())


def _review(script: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to an AdmissionReview or ConversionReview, or, with `status`, to a TokenReview or
    SubjectAccessReview.
    """
    if "status" in script:
        return {"apiVersion": body["apiVersion"], "kind": body["kind"], "status": script["status"]}
    response: dict[str, Any] = {"uid": body["request"]["uid"]}
    if "convert" in script:
        _convert(body["request"], *script["convert"])
        response |= {"result": {"status": "Success"}, "convertedObjects": body["request"]["objects"]}
    else:
        response["allowed"] = True
    if "patch" in script:
        patch = base64.b64encode(json.dumps(script["patch"]).encode()).decode()
        response |= {"patchType": "JSONPatch", "patch": patch}
    answer = response | script.get("response", {})
    review = {"apiVersion": body["apiVersion"], "kind": body["kind"], "response": answer}
    changed: dict[str, Any] = review | script.get("review", {})
    return changed


def _convert(request: dict[str, Any], version: str, old: str, new: str) -> None:
    """Convert the objects to the desired version: in `version` the field `old` is called `new`."""
    aim = request["desiredAPIVersion"]
    away, to = (old, new) if aim.endswith("/" + version) else (new, old)
    for each in request["objects"]:
        each["apiVersion"] = aim
        *parents, last = away.split(".")
        holder = each
        for key in parents:
            holder = holder.get(key, {})
        if last in holder:
            holder[to.split(".")[-1]] = holder.pop(last)


def serve(name: str, script: dict[str, Any], variables: dict[str, str]) -> HookServer:
    """Start a TLS server whose certificate is its own CA, and set the variables NAME.url, NAME.ca, NAME.ip, NAME.port."""
    server = HookServer(script)
    pem, key = _certificate(["localhost", f"{name}.{variables['ns']}.svc"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "crt").write_bytes(pem)
        Path(folder, "key").write_bytes(key)
        context.load_cert_chain(f"{folder}/crt", f"{folder}/key")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.pem, port = pem.decode(), server.server_address[1]
    found = {
        "url": f"https://127.0.0.1:{port}",
        "ca": base64.b64encode(pem).decode(),
        "ip": _outward_address(),
        "port": str(port),
    }
    variables |= {f"{name}.{key}": value for key, value in found.items()}
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    return server


def _certificate(names: list[str]) -> tuple[bytes, bytes]:
    """Return a self-signed certificate for the local address and these names, and its key, both in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hook")])
    now = datetime.datetime.now(datetime.UTC)
    local = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([local, *map(x509.DNSName, names)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def _outward_address() -> str:
    """Return the outward address of this machine, without sending anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
