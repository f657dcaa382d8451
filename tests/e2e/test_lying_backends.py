"""Tests of kubelets, pods and services that break HTTP: the answers to clients, and the server's errors.

Codes and messages are those of kube-apiserver 1.36.3 before the same backends, but for the known differences.
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from steersman.testing import ServerProcess
from tests.e2e.fake_kubelet import ADDRESS, Certificates, add_node, add_pod, needs_address

pytestmark = [pytest.mark.slow, needs_address]

KINDS = ("log", "node", "pod", "service")
PATIENCE = 20.0
BROKEN = "net/http: HTTP/1.x transport connection broken: "
PANICKED = "This request caused apiserver to panic. Look in the logs for details.\n"
EXCEEDED = f"{BROKEN}net/http: server response headers exceeded"
NOT_WRITABLE = "internal error: 101 switching protocols response with non-writable body"
PAGE = b'<a href="/x">'


def head(status: str, *fields: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", *fields, "")).encode()


def page(encoding: str, data: bytes) -> bytes:
    return (
        head("200 OK", "Content-Type: text/html", f"Content-Encoding: {encoding}", f"Content-Length: {len(data)}")
        + data
    )


def chunked(data: bytes) -> bytes:
    return head("200 OK", "Transfer-Encoding: chunked") + data


OK = head("200 OK", "Content-Length: 2") + b"ok"
LOCATION = "error trying to parse Location header: parse "


@dataclass(frozen=True)
class Lie:
    """Bytes that a backend sends before it hangs up, and the outcomes of a log request and of a proxied request.

    An outcome is the code, and the beginning of the message or, without a Status, of the body. A truncated body ends in
    `CUT`.
    """

    sent: bytes
    log: tuple[int, str]
    passed: tuple[int, str]


CUT = "<cut>"


def broken(sent: bytes, message: str) -> Lie:
    """Return a lie that is an unreadable response."""
    return Lie(sent, (500, f'Get "URL": {message}'), (503, f"error trying to reach service: {message}"))


def served(sent: bytes, status: int, body: str) -> Lie:
    """Return a lie that the proxy passes on as it is, and that is a log only if its status is a success."""
    return Lie(sent, (status, body), (status, body))


LIES = {
    "status 000": Lie(
        head("000 X"),
        (500, "the server responded with the status code 0 but did not return more information ( pods/log p)"),
        (500, PANICKED),
    ),
    "status 099": served(head("099 X"), 500, PANICKED),
    "status 99": broken(head("99 X"), f'{BROKEN}malformed HTTP status code "99"'),
    "status 1000": broken(head("1000 X"), f'{BROKEN}malformed HTTP status code "1000"'),
    "status 2a0": broken(head("2a0 X"), f'{BROKEN}malformed HTTP status code "2a0"'),
    "status 999": Lie(
        head("999 X", "Content-Length: 2") + b"ok",
        (999, 'an error on the server ("ok") has prevented the request from succeeding ( pods/log p)'),
        (999, "ok"),
    ),
    "an upgrade to nothing": Lie(head("101 S") + b"x", (500, f'Get "URL": {NOT_WRITABLE}'), (500, NOT_WRITABLE)),
    "an upgrade": Lie(
        head("101 S", "Connection: Upgrade", "Upgrade: x") + b"x" * 1000,
        (500, 'Get "URL": backend tried to switch protocol "x" when "" was requested'),
        (500, 'backend tried to switch protocol "x" when "" was requested'),
    ),
    "an interim answer only": broken(head("103 E"), f"{BROKEN}unexpected EOF"),
    "interim answers": served(head("103 E", "Link: x") * 1000 + OK, 200, "ok"),
    "a flood of interim answers": broken(
        head("100 Continue") * 100_000 + OK, f"{BROKEN}net/http: too many 1xx informational responses"
    ),
    "a flood of large interim answers": broken(head("103 E", f"A: {'x' * 200_000}") * 20 + OK, EXCEEDED),
    "a huge field": broken(head("200 OK", f"A: {'x' * 2_000_000}"), EXCEEDED),
    "many fields": broken(head("200 OK", *["A: b"] * 20_000), EXCEEDED),
    "a field without a colon": broken(head("200 OK", "A"), f'{BROKEN}malformed MIME header: missing colon: "A"'),
    "half a head": broken(b"HTTP/1.1 200 OK\r\nA: b", f"{BROKEN}unexpected EOF"),
    "nothing": broken(b"", "EOF"),
    "another protocol": broken(b"SSH-2.0-x\r\n", f'{BROKEN}malformed HTTP response "SSH-2.0-x"'),
    "no protocol": broken(b"\x00\x01\xff" * 50, f"{BROKEN}malformed HTTP response "),
    "no status line": broken(b"hello world", f'{BROKEN}malformed HTTP status code "world"'),
    "a bad length": broken(head("200 OK", "Content-Length: -1"), f'{BROKEN}bad Content-Length "-1"'),
    "a huge length": broken(head("200 OK", f"Content-Length: {'9' * 30}"), f"{BROKEN}bad Content-Length"),
    "two lengths": broken(
        head("200 OK", "Content-Length: 2", "Content-Length: 3"),
        f"{BROKEN}http: message cannot contain multiple Content-Length headers",
    ),
    "two codings": broken(head("200 OK", "Transfer-Encoding: gzip, chunked"), f"{BROKEN}unsupported transfer encoding"),
    "a trailer that frames": broken(
        head("200 OK", "Trailer: Content-Length", "Transfer-Encoding: chunked") + b"2\r\nok\r\n0\r\n\r\n",
        f'{BROKEN}bad trailer key "Content-Length"',
    ),
    "a length too long": served(head("200 OK", "Content-Length: 50") + b"ok", 200, f"ok{CUT}"),
    "a length too short": served(head("200 OK", "Content-Length: 2") + b"okmore", 200, "ok"),
    "a chunk that is shorter": served(chunked(b"ff\r\nok"), 200, f"ok{CUT}"),
    "a chunk without a size": served(chunked(b"zz\r\nok"), 200, CUT),
    "a chunk of no end": served(chunked(b"fffffffffffffffff\r\nok"), 200, CUT),
    "chunks of little else than extensions": served(
        chunked((b"1;" + b"x" * 3000 + b"\r\na\r\n") * 30 + b"0\r\n\r\n"), 200, CUT
    ),
    "a flood of trailers": served(chunked(b"2\r\nok\r\n0\r\n" + b"A: b\r\n" * 5000 + b"\r\n"), 200, CUT),
    "a body of 204": Lie(head("204 N", "Content-Length: 5") + b"hello", (200, ""), (204, "")),
    "a body of 304": Lie(head("304 N", "Content-Length: 5") + b"hello", (304, ""), (304, "")),
    "a page cut off": Lie(
        head("200 OK", "Content-Type: text/html", "Content-Length: 50") + PAGE,
        (200, f"{PAGE.decode()}{CUT}"),
        (500, "unexpected EOF"),
    ),
    "a page that is not compressed": Lie(
        page("gzip", PAGE), (200, PAGE.decode()), (500, "errorf making gzip reader: gzip: invalid header")
    ),
    "a page compressed in part": Lie(page("gzip", gzip.compress(PAGE)[:-9]), (200, ""), (500, "unexpected EOF")),
    "a page of another sum": Lie(
        page("gzip", gzip.compress(PAGE)[:-8] + b"12345678"), (200, ""), (500, "gzip: invalid checksum")
    ),
    "a page of nothing": Lie(page("gzip", b""), (200, ""), (500, "errorf making gzip reader: EOF")),
    "a deflated page of nothing": Lie(page("deflate", b""), (200, ""), (500, "unexpected EOF")),
    "a page that grows": Lie(
        page("gzip", gzip.compress(b"x" * 50_000_000)),
        (200, ""),
        (503, "error trying to reach service: a page of more than 8388608 bytes"),
    ),
    "a redirect to no host": Lie(
        head("302 F", "Location: http://[::1", "Content-Length: 0"),
        (500, 'Get "URL": failed to parse Location header "http://[::1": parse "http://[::1": missing \']\' in host'),
        (500, f"Internal error occurred: {LOCATION}\"http://[::1\": missing ']' in host"),
    ),
    "a redirect to no path": Lie(
        head("302 F", "Location: /%zz", "Content-Length: 0"),
        (500, 'Get "URL": failed to parse Location header "/%zz": parse "/%zz": invalid URL escape "%zz"'),
        (500, f'Internal error occurred: {LOCATION}"/%zz": invalid URL escape "%zz"'),
    ),
    "a failure cut off": Lie(
        head("500 E", "Content-Length: 50") + b"bad",
        (500, "Internal error occurred: unexpected EOF"),
        (500, f"bad{CUT}"),
    ),
}


@dataclass
class Liar:
    """Backend that answers every request with `sent` and hangs up, with TLS and without."""

    certificates: Certificates
    sent: bytes = b""
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when the server has hung up on an endless answer."""

    def start(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificates.server.cert_file, self.certificates.server.key_file)
        self._listeners = [socket.create_server(("0.0.0.0", 0)) for _ in range(2)]
        self.secure_port, self.port = (each.getsockname()[1] for each in self._listeners)
        for listener, tls in zip(self._listeners, (context, None), strict=True):
            threading.Thread(target=self._accept, args=(listener, tls), daemon=True).start()

    def stop(self) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection, tls), daemon=True).start()

    def _answer(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        connection.settimeout(PATIENCE)
        try:
            with connection if tls is None else tls.wrap_socket(connection, server_side=True) as talking:
                read = b""
                while b"\r\n\r\n" not in read and (data := talking.recv(65536)):
                    read += data
                if self.sent:
                    talking.sendall(self.sent)
                    talking.shutdown(socket.SHUT_WR)
                    while talking.recv(65536):
                        pass
                else:
                    self._drip(talking, drips=b"drip" in read)
        except OSError:
            return  # the server may hang up at any time

    def _drip(self, talking: socket.socket, *, drips: bool) -> None:
        """Send a head piece by piece, without an end."""
        if not drips:
            return
        try:
            talking.sendall(b"HTTP/1.1 200 OK\r\nA: ")
            while True:
                talking.sendall(b"x" * 1000)
        except OSError:
            self.gone.set()


@pytest.fixture(scope="module")
def liar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Liar]:
    liar = Liar(Certificates(tmp_path_factory.mktemp("liar"), "127.0.0.1", ADDRESS))
    liar.start()
    yield liar
    liar.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, liar: Liar) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("server") / "data", "--debug-loop-watchdog=1s")
    process.start()
    add_node(process, "n", ADDRESS, liar.secure_port)
    add_pod(process, "default", "p", ip=ADDRESS)
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "targetPort": liar.port, "name": "w"}]}}
    target = {"kind": "Pod", "name": "p", "namespace": "default"}
    subset = {"addresses": [{"ip": ADDRESS, "targetRef": target}], "ports": [{"port": liar.port, "name": "w"}]}
    with process.client() as client:
        for plural, body in (("services", service), ("endpoints", {"metadata": {"name": "s"}, "subsets": [subset]})):
            code, answer = client.request("POST", f"/api/v1/namespaces/default/{plural}", body)
            assert code == 201, answer
    yield process
    if process.running:
        assert process.stop() == 0


def path_of(kind: str, liar: Liar, last: str = "x") -> str:
    namespace = "/api/v1/namespaces/default"
    return {
        "log": f"{namespace}/pods/p/log",
        "node": f"/api/v1/nodes/n/proxy/{last}",
        "pod": f"{namespace}/pods/p:{liar.port}/proxy/{last}",
        "service": f"{namespace}/services/s:w/proxy/{last}",
    }[kind]


def ask(server: ServerProcess, method: str, path: str) -> tuple[int, str]:
    """Return the code, and the message of a Status or otherwise the body."""
    connection = http.client.HTTPSConnection(*server.address, context=server.context(), timeout=PATIENCE)
    with closing(connection):
        connection.request(method, path)
        answer = connection.getresponse()
        try:
            text = answer.read().decode(errors="replace")
        except http.client.IncompleteRead as error:
            text = error.partial.decode(errors="replace") + CUT
    if '"kind":"Status"' in text:
        text = re.sub(
            rf"https://{re.escape(ADDRESS)}:\d+/containerLogs/default/p/c", "URL", json.loads(text)["message"]
        )
    return answer.status, text


def complaints(server: ServerProcess) -> list[str]:
    """Return the log lines of the server that no lie may cause."""
    return [line for line in server.errors.read_text().splitlines() if "Traceback" in line or "held" in line]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LIES)
def test_what_a_client_is_told_of_a_lie(server: ServerProcess, liar: Liar, name: str, kind: str) -> None:
    lie = LIES[name]
    liar.sent = lie.sent
    status, text = lie.log if kind == "log" else lie.passed
    code, told = ask(server, "GET", path_of(kind, liar))
    assert code == status
    assert told.startswith(text.removesuffix(CUT))
    assert told.endswith(CUT) == text.endswith(CUT)
    assert complaints(server) == []


@pytest.mark.parametrize("kind", KINDS[1:])
def test_what_head_is_answered(server: ServerProcess, liar: Liar, kind: str) -> None:
    for lie in LIES.values():
        liar.sent = lie.sent
        status, _ = ask(server, "HEAD", path_of(kind, liar))
        assert status in {200, 204, 302, lie.passed[0]}
    liar.sent = head("200 OK", "Content-Length: 5") + b"hello"
    assert ask(server, "HEAD", path_of(kind, liar)) == (200, "")
    assert complaints(server) == []


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_head_without_an_end_is_refused_and_its_connection_closed(
    server: ServerProcess, liar: Liar, kind: str
) -> None:
    liar.sent = b""
    liar.gone.clear()
    code, told = ask(server, "GET", path_of(kind, liar, "drip"))
    assert (code, told[: len(EXCEEDED) + 32]) == (503, f"error trying to reach service: {EXCEEDED} ")
    assert liar.gone.wait(PATIENCE)
    assert complaints(server) == []
