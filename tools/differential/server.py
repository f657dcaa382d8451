"""The servers compared: started by a command, asked over one connection each."""

from __future__ import annotations

import http.client
import json
import select
import shlex
import signal
import ssl
import subprocess
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from .recording_hook import RecordingHook

START_TIMEOUT: Final = 120.0
STOP_TIMEOUT: Final = 60.0
REQUEST_TIMEOUT: Final = 60.0


Headers = Mapping[str, str | tuple[str, ...] | None]


@dataclass(frozen=True)
class Answer:
    """A response: its status, its body as JSON or, where it is none, as text, and the warnings that came with it."""

    code: int
    body: Any
    warnings: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The fields of its head, by names in lower case."""
    asked: str = field(default="", compare=False)
    """The path of the request."""


def _data(text: str) -> Any:
    """The JSON of a body, a list of it if there is one value on each line. Raises ValueError."""
    try:
        return json.loads(text)
    except ValueError:
        lines = text.splitlines()
        if len(lines) < 2 or not lines[0].startswith("{"):
            raise
        return [json.loads(line) for line in lines]


class Client:
    """Asks one server, always over the same connection; it is opened again when the server has closed it.

    Of several servers with the same objects, at `urls`, each request is for the next.
    """

    def __init__(self, url: str, ca: str, token: str, urls: Sequence[str] = ()) -> None:
        self._made_of = (url, ca, token, urls)
        self.found = {"url": url, "ca": ca, "token": token}
        """URL, CA and token of the server."""
        parts = [urllib.parse.urlsplit(each) for each in urls or [url]]
        self._addresses = [(each.hostname or "", each.port) for each in parts]
        self._turn = 0
        """Index of the server that is asked next."""
        self._tls = ssl.create_default_context(cafile=ca)
        self._token = token
        self._connections: dict[int, http.client.HTTPSConnection] = {}
        self.hook: RecordingHook | None = None
        """The webhook that the server may be told of."""

    def another(self) -> Client:
        """A client of the same server with a connection of its own."""
        client = Client(*self._made_of)
        client.hook = self.hook
        return client

    def received(self, case: str) -> Answer:
        """Return the requests to the webhook about a case since the last call."""
        return Answer(200, [] if self.hook is None else self.hook.taken(case))

    def placed(self, body: Any) -> Any:
        """A body with where the webhook is put in."""
        if self.hook is None or body is None:
            return body
        text = json.dumps(body).replace("@HOOK@", self.hook.url).replace("@CA@", self.hook.ca_bundle)
        return json.loads(text)

    def ask(self, method: str, path: str, body: Any = None, headers: Headers | None = None) -> Answer:
        """The answer to a request. A body that is not text is sent as JSON; a header that is None is not sent, one
        with several values several times."""
        fields: dict[str, str | tuple[str, ...] | None] = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
            "User-Agent": "differential",
        }
        if body is not None:
            fields["Content-Type"] = "application/json"
            body = (body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))).encode()
        fields.update(headers or {})
        sent = http.client.HTTPMessage()
        for name, value in fields.items():
            for each in (value,) if isinstance(value, str) else value or ():
                sent[name] = each
        self._turn = (self._turn + 1) % len(self._addresses)
        for attempt in (1, 2):
            connection = self._open()
            try:
                connection.request(method, path, body=body, headers=sent)  # type: ignore[arg-type]
                response = connection.getresponse()
                text = response.read().decode("utf-8", "replace")
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self._drop()
                if attempt == 2:
                    return Answer(0, "the connection was closed without an answer")
                continue
            try:
                found = _data(text)
            except ValueError:
                found = text
            head = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, found, tuple(response.headers.get_all("Warning") or ()), head, path)
        raise AssertionError("unreachable")

    def begin(self, method: str, path: str) -> None:
        """Sends a request, such as a watch, and does not read on once its answer has begun."""
        connection = self._open()
        connection.request(method, path, headers={"Authorization": f"Bearer {self._token}"})
        connection.getresponse()

    def _open(self) -> http.client.HTTPSConnection:
        if self._turn not in self._connections:
            self._connections[self._turn] = http.client.HTTPSConnection(
                *self._addresses[self._turn], timeout=REQUEST_TIMEOUT, context=self._tls
            )
        return self._connections[self._turn]

    def _drop(self) -> None:
        self._connections.pop(self._turn).close()

    def close(self) -> None:
        """Closes its connections; the next request opens one."""
        for each in self._connections.values():
            each.close()
        self._connections.clear()


class Server:
    """A server in the foreground of a command, from `with` to the end of it."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._client: Client | None = None

    def __enter__(self) -> Client:
        self._process = subprocess.Popen(shlex.split(self._command), stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_TIMEOUT)
        line = self._process.stdout.readline() if ready else ""
        try:
            document = json.loads(line)
            self._client = Client(document["url"], document["ca"], document["token"], document.get("urls", ()))
            return self._client
        except (ValueError, KeyError) as error:
            self._stop()
            raise RuntimeError(f"{self._command!r} did not say where it listens, but {line!r}") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()
        self._stop()

    def _stop(self) -> None:
        process = self._process
        assert process is not None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout is not None:
            process.stdout.close()
