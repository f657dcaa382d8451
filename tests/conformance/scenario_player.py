"""Plays scenarios against a Kubernetes API server and holds its answers against recorded ones.

    scenario_player.py --url URL --ca FILE SCENARIO...            compare with the recorded answers
    scenario_player.py --url URL --ca FILE --record SCENARIO...   write them: on the server that is right by definition

A SCENARIO is a YAML file, or a folder of them; the answers lie beside it as NAME.golden.json.
The server must know the users of tokens.csv (--token-auth-file), and run with --authorization-mode=Node,RBAC
--disable-admission-plugins=ServiceAccount --allow-privileged --service-cluster-ip-range=10.0.0.0/24
--service-account-issuer=https://kubernetes.default.svc.cluster.local; an area with a server-flags.txt needs those flags
instead, and is played only when its folder is named. The exit code is 0 when every step of every scenario agrees; the
last line is "N passed, N failed" (steps).

A scenario:
    about: one line
    namespace: false                      # optional: do not make a namespace
    steps:
    - do: POST /api/v1/namespaces/{ns}/pods     # {ns}: the namespace made for this scenario
      as: alice                           # admin (default), alice, bob, node-a, anonymous
      headers: {Accept: application/json}   # a list is sent as several headers
      body: {...}                         # a mapping is sent as JSON, a string as it is
      save: {rv: metadata.resourceVersion}  # {rv} in later steps; its value reads {rv} in the answers; also header.etag
      until: {status.phase: Active}       # asked again, 10 s at most, until these paths hold
      ignore: [status.conditions]         # paths left out of the comparison
      only: [code]                        # compare nothing but: code, headers, body
      unordered: true                     # a Status's causes, and the words of its message, may come in any order
    - watch: GET /api/v1/namespaces/{ns}/pods?watch=1   # opens in the background
      id: w
    - events: w                           # collects what the watch has seen
      count: 3                            # waits for so many events, 5 s at most
      seconds: 1                          # with no count: waits so long
    - sleep: 0.5
    - serve: hook                         # an HTTPS server of the player's own, kept to the end of the scenario, for
      paths:                              # webhooks: {hook.url}, {hook.ca} (base64), {hook.ip}, {hook.port}
        /deny: {response: {allowed: false, status: {message: no}}}   # a review's answer; uid is put in, allowed is true
        /patch: {patch: [{op: add, path: /data/a, value: b}]}        # sent as base64, with its patchType
        /convert: {convert: [v2, spec.host, spec.name]}    # at v2 the field spec.host is called spec.name
        /bad: {code: 500, body: oops, sleep: 1}            # anything else; `review` overrides the envelope
    - received: hook                      # the requests it has had since last asked, in the order of their paths
      path: /deny                         # of this path only
      last: 1                             # no more than so many
      count: 2                            # waits for so many, 10 s at most
    - file: audit.log                     # of a server of the scenario's own (see scenario_servers.py): the JSON lines
      where: {stage: ResponseComplete}    # that a file has got since last asked, where these paths hold
      count: 3                            # waits for so many, 10 s at most
      only: []                            # passes over them
    - write: {policy.yaml: {...}}         # rewrites files of such a server
    - restart: {flags: [...], files: {}}  # stops it, lays this over what it was, starts it again on its data
    - sign: {t: {jwt: KEY, claims: {}}}   # {t} is that token in later steps
    - finish: ID                          # the answer of a step that went on in the background
A `do` step may have `also: [audit-id]`, further headers of the answer to compare; `within: 20`, other seconds for
`until`; `keep: REGEX`, of a text the lines that match, runs of blanks made one; `background: ID`, to go on with the
next step; and
    as: {token: T}                        # any token
    as: cert:NAME                         # a certificate of such a server; also {cert: NAME, user: alice}
    as: {jwt: KEY, claims: {iss: '{idp.url}', sub: a}, expires: 600, header: {}}   # a token signed here
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import http.client
import json
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tests.conformance.scenario_answers import Normaliser, differences, dig, drop, put_in_order
from tests.conformance.scenario_hooks import HookServer, serve
from tests.conformance.scenario_servers import SERVER_FILE, OwnServer, asks_for_its_own, fill

TOKENS: Final = {"admin": "admin-token", "alice": "alice-token", "bob": "bob-token", "node-a": "node-a-token"}
FLAGS_FILE: Final = "server-flags.txt"
"""File in an area's folder with flags of its server, one a line, which replace the usual flags of the same names."""
_HEADERS: Final = (
    "content-type",
    "warning",
    "retry-after",
    "location",
    "allow",
    "www-authenticate",
    "cache-control",
    "x-content-type-options",
    "vary",
    "access-control-allow-origin",
    "deprecation",
)
_PATIENCE: Final = 10.0
_CERTIFICATE: Final = "cert:"
_FAILURES: Final = (OSError, http.client.HTTPException, KeyError, ValueError)
"""Exceptions that a wrong answer can cause in later steps of a scenario."""

Exchange = tuple[http.client.HTTPConnection, http.client.HTTPResponse]
Answered = tuple[http.client.HTTPResponse, Any]
"""Response, and its body."""


class Server:
    """API server, reached over HTTP/1.1, with TLS or without."""

    def __init__(self, url: str, ca: str | None, own: OwnServer | None = None) -> None:
        self._own = own
        self.reach(url, ca)

    def reach(self, url: str, ca: str | None) -> None:
        """Use the server at this URL from now on."""
        parts = urllib.parse.urlsplit(url)
        self._address = (parts.hostname or "", parts.port)
        self._ca = ca
        self._tls = self._context() if parts.scheme == "https" else None

    def _context(self, certificate: str = "") -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._ca) if self._ca else ssl._create_unverified_context()
        if certificate:
            assert self._own is not None, "only a server of the scenario's own has certificates"
            context.load_cert_chain(*self._own.certificate(certificate))
        return context

    def ask(
        self,
        method: str,
        path: str,
        *,
        user: str | dict[str, Any] = "admin",
        headers: dict[str, Any] | None = None,
        body: Any = None,
        timeout: float = 30.0,
    ) -> Exchange:
        """Send a request and return the connection, which the caller closes, and the response with an unread body."""
        fields: dict[str, Any] = {"User-Agent": "replay", "Accept": "application/json"} | (headers or {})
        if isinstance(user, str):
            user = {"cert": user.removeprefix(_CERTIFICATE)} if user.startswith(_CERTIFICATE) else {"user": user}
        if token := self._token(user):
            fields["Authorization"] = f"Bearer {token}"
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
            fields.setdefault("Content-Type", "application/json")
        connection = self._connection(timeout, user.get("cert", ""))
        try:
            given: Any = http.client.HTTPMessage()  # a mapping that repeats names
            for name, value in fields.items():
                for each in value if isinstance(value, list) else [value]:
                    given[name] = str(each)
            connection.request(method, path, body=None if body is None else body.encode(), headers=given)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def _token(self, user: dict[str, Any]) -> str | None:
        if "jwt" in user:
            assert self._own is not None, "only a server of the scenario's own has keys"
            return self._own.token(user)
        found: str | None = user.get("token") or TOKENS.get(user.get("user", ""))
        return found

    def _connection(self, timeout: float, certificate: str) -> http.client.HTTPConnection:
        if self._tls is not None:
            context = self._context(certificate) if certificate else self._tls
            return http.client.HTTPSConnection(*self._address, timeout=timeout, context=context)
        return http.client.HTTPConnection(*self._address, timeout=timeout)


class Watch(threading.Thread):
    """Thread that reads a watch, one JSON event a line."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        super().__init__(daemon=True)
        self._connection, self._response = connection, response
        self._socket = connection.sock
        self._events: list[Any] = []
        self._ended = False
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            while line := self._response.readline():
                if line.strip():
                    self._events.append(json.loads(line))
        self._ended = True

    def stop(self) -> None:
        """End the watch."""
        if self._socket:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # ends the reader's wait; closing alone would not
        self.join(2)
        self._connection.close()

    def collect(self, count: int | None, seconds: float | None) -> dict[str, Any]:
        """Wait for `count` events or for so many seconds, end the watch, and return its events as an answer."""
        deadline = time.monotonic() + (seconds or (5 if count else 1))
        while time.monotonic() < deadline and not self._ended and not (count and len(self._events) >= count):
            time.sleep(0.02)
        events = list(self._events)
        self.stop()
        headers = {"content-type": self._response.headers.get("content-type")}
        return {"code": self._response.status, "headers": headers, "body": events[:count] if count else events}


@dataclass
class Play:
    """Playback of one scenario."""

    server: Server
    normaliser: Normaliser = field(default_factory=Normaliser)
    watches: dict[str, Watch] = field(default_factory=dict)
    hooks: dict[str, HookServer] = field(default_factory=dict)
    own: OwnServer | None = None
    """The scenario's own server, None if the scenario has none."""
    pending: dict[str, concurrent.futures.Future[Answered]] = field(default_factory=dict)
    pool: concurrent.futures.ThreadPoolExecutor = field(default_factory=concurrent.futures.ThreadPoolExecutor)

    @property
    def variables(self) -> dict[str, str]:
        return self.normaliser.variables

    def make_namespace(self, name: str) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        connection, response = self.server.ask("POST", "/api/v1/namespaces", body=body)
        response.read()
        connection.close()

    def step(self, raw: dict[str, Any]) -> dict[str, Any] | None:
        """Run one step and return its answer, None if it has none."""
        if self._is_done_without_answer(raw):
            return None
        if "events" in raw:
            answer = self.watches.pop(raw["events"]).collect(raw.get("count"), raw.get("seconds"))
        elif "received" in raw:
            answer = self._received(raw)
        elif "file" in raw:
            answer = self._lines(raw)
        elif "finish" in raw:
            answer = self._compared(raw, self.pending.pop(raw["finish"]).result())
        else:
            step = fill(raw, self.variables)
            answer = self._compared(step, self._do(step))
        answer["body"] = self.normaliser.walk(answer["body"])
        for path in raw.get("ignore", []):
            drop(answer["body"], path)
        if raw.get("unordered"):
            put_in_order(answer["body"])
        return {key: answer[key] for key in raw["only"]} if "only" in raw else answer

    def _is_done_without_answer(self, raw: dict[str, Any]) -> bool:
        """Run a step that has no answer. Return False, and do nothing, for any other step."""
        if "sleep" in raw:
            time.sleep(raw["sleep"])
        elif "serve" in raw and raw["serve"] in self._own_hooks:
            self._owned.script(raw["serve"], raw["paths"])
        elif "serve" in raw:
            self.hooks[raw["serve"]] = serve(raw["serve"], fill(raw["paths"], self.variables), self.variables)
        elif "watch" in raw:
            self.watches[raw["id"]] = Watch(*self._ask(fill(raw, self.variables), raw["watch"], 60.0))
        elif "write" in raw:
            self._owned.write(fill(raw["write"], self.variables))
        elif "sign" in raw:
            signed = fill(raw["sign"], self.variables)
            self.variables.update({name: self._owned.token(each) for name, each in signed.items()})
        elif "restart" in raw:
            self.server.reach(*self._owned.ask_anew(raw["restart"]))
        elif "background" in raw:
            self.pending[raw["background"]] = self.pool.submit(self._do, fill(raw, self.variables))
        else:
            return False
        return True

    @property
    def _owned(self) -> OwnServer:
        assert self.own is not None, "only a server of the scenario's own can do this"
        return self.own

    @property
    def _own_hooks(self) -> dict[str, HookServer]:
        return {} if self.own is None else self.own.hooks

    def _lines(self, raw: dict[str, Any]) -> dict[str, Any]:
        some = self._owned.lines(raw["file"], fill(raw.get("where", {}), self.variables), raw.get("count", 0))
        return {"body": some if "body" in raw.get("only", ["body"]) else None}  # else they would number symbols

    def _ask(self, step: dict[str, Any], line: str, timeout: float) -> Exchange:
        method, _, path = fill(line, self.variables).partition(" ")
        return self.server.ask(
            method,
            path.strip().replace(" ", "%20"),
            user=step.get("as", "admin"),
            headers=step.get("headers", {}),
            body=step.get("body"),
            timeout=timeout,
        )

    def _do(self, step: dict[str, Any]) -> Answered:
        """Send the request of a step, again and again until its `until` conditions hold."""
        deadline = time.monotonic() + step.get("within", _PATIENCE)
        wanted = step.get("until") or {}
        while True:
            connection, response = self._ask(step, step["do"], 30.0)
            data = response.read()
            connection.close()
            try:
                body = json.loads(data) if data else None
            except ValueError:
                body = data.decode("utf-8", "backslashreplace")
            if time.monotonic() > deadline or all(dig(body, path) == value for path, value in wanted.items()):
                return response, body
            time.sleep(0.05)

    def _compared(self, step: dict[str, Any], answered: Answered) -> dict[str, Any]:
        """Return the compared parts of an answer, and save the values that the step's `save` names."""
        response, body = answered
        for name, where in step.get("save", {}).items():
            found = response.getheader(where[7:]) if where.startswith("header.") else dig(body, where)
            if found is not None:
                self.variables[name] = str(found)
        if "keep" in step and isinstance(body, str):
            kept = (line for line in body.splitlines() if re.search(step["keep"], line))
            body = "\n".join(re.sub(r"\s+", " ", line).strip() for line in kept)
        compared = (*_HEADERS, *step.get("also", ()))
        several = {name: response.headers.get_all(name, []) for name in compared}
        headers = {name: self.normaliser.text(", ".join(values)) for name, values in several.items() if values}
        return {"code": response.status, "body": body, "headers": headers}

    def _received(self, raw: dict[str, Any]) -> dict[str, Any]:
        seen = (self.hooks | self._own_hooks)[raw["received"]].seen

        def path(each: dict[str, Any]) -> str:
            return str(each["request"].partition(" ")[2].partition("?")[0])

        def mine() -> list[dict[str, Any]]:
            return [each for each in sorted(seen, key=path) if raw.get("path") in (None, path(each))]

        deadline = time.monotonic() + _PATIENCE
        while len(mine()) < raw.get("count", 0) and time.monotonic() < deadline:
            time.sleep(0.02)
        some = mine()
        seen.clear()
        return {"body": some[-raw.get("last", 0) :]}

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        for watch in self.watches.values():
            watch.stop()
        for hook in self.hooks.values():
            hook.shutdown()
            hook.server_close()


def namespace_of(file: Path) -> str:
    """Return the namespace that is created for a scenario."""
    return re.sub(r"[^a-z0-9-]", "-", f"{file.parent.name}-{file.stem}".lower())[:60].strip("-")


def play(server: Server, file: Path, own: OwnServer | None = None) -> list[dict[str, Any]]:
    """Plays one scenario; its normalised answers, one a step that has any.

    One that applies begins with a second of the clock: managers are in the order of their times, in seconds, and an
    apply that changes nothing but that order is written, by kube-apiserver too.
    """
    text = file.read_text()
    scenario = yaml.safe_load(text)
    playing = Play(server, own=own)
    if own is not None:
        playing.variables.update(own.variables)
    namespace = playing.variables["ns"] = namespace_of(file)
    if scenario.get("namespace", True):
        playing.make_namespace(namespace)
    if "apply-patch" in text:
        time.sleep(1 - time.time() % 1)
    answers = []
    try:
        for number, raw in enumerate(scenario["steps"], 1):
            answer = playing.step(raw)
            if answer is not None:
                answers.append({"step": number, "title": _title(raw)} | answer)
    finally:
        playing.close()
    return answers


def _title(raw: dict[str, Any]) -> str:
    if "events" in raw:
        return f"events {raw['events']}"
    if "file" in raw:
        return f"file {raw['file']}"
    if "finish" in raw:
        return f"finish {raw['finish']}"
    return str(raw["do"]) if "do" in raw else f"received {raw['received']}"


def scenarios(places: Iterable[Path]) -> list[Path]:
    """Return the scenario files at these paths. Areas with servers of their own must be named themselves."""
    files: list[Path] = []
    for place in places:
        found = sorted(place.rglob("*.yaml")) if place.is_dir() else [place]
        files += [
            file
            for file in found
            if file.name != SERVER_FILE
            and (file.parent == place or file == place or not (_flags_of(file).exists() or asks_for_its_own(file)))
        ]
    return files


def _flags_of(file: Path) -> Path:
    return file.parent / FLAGS_FILE


def golden(file: Path) -> Path:
    """Return the file with a scenario's recorded answers."""
    return file.with_suffix(".golden.json")


@dataclass
class Outcome:
    """Result of a scenario: the number of steps that passed, and the failed steps, each with its differences."""

    file: Path
    passed: int = 0
    failed: list[tuple[dict[str, Any], list[str]]] = field(default_factory=list)
    error: Exception | None = None
    """Exception that ended the scenario early."""

    def lines(self, show: int) -> list[str]:
        """Return a report of at most `show` failing steps; 0 shows all."""
        total = self.passed + len(self.failed)
        state, why = ("FAIL" if self.failed else "ok  "), (f" {self.error!r}" if self.error else "")
        lines = [f"{state} {self.file} {self.passed}/{total}{why}"]
        for step, wrong in self.failed[: show or None]:
            lines.append(f"     step {step['step']}: {step['title']}")
            lines += [f"       {line}" for line in wrong[: show * 3 or None]]
        return lines


def check(server: Server, file: Path, own: OwnServer | None = None) -> Outcome:
    """Play a scenario and compare it with its recorded answers."""
    outcome = Outcome(file)
    answers: list[dict[str, Any]] = []
    try:
        answers = play(server, file, own)
    except _FAILURES as error:
        outcome.error = error
    have = {each["step"]: each for each in answers}
    for want in json.loads(golden(file).read_text()):
        wrong = differences(want, have[want["step"]]) if want["step"] in have else ["no answer"]
        if wrong:
            outcome.failed.append((want, wrong))
        else:
            outcome.passed += 1
    return outcome


def check_all(
    server: Server, files: Iterable[Path], *, jobs: int = 1, report: Callable[[Outcome], None]
) -> tuple[int, int]:
    """Check scenarios, `jobs` at a time, and return the numbers of passed and failed steps."""
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for outcome in pool.map(lambda file: check(server, file), files):
            passed += outcome.passed
            failed += len(outcome.failed)
            report(outcome)
    return passed, failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--ca", help="the server's CA; without it the certificate is not checked")
    parser.add_argument("--show", type=int, default=4, help="failing steps shown a scenario, 0 for all")
    parser.add_argument("--jobs", type=int, default=1, help="scenarios played at a time")
    parser.add_argument("--record", action="store_true", help="write the answers, do not compare")
    parser.add_argument("scenario", nargs="+", type=Path)
    options = parser.parse_args()
    server, files = Server(options.url, options.ca), scenarios(options.scenario)
    if options.record:
        for file in files:
            answers = play(server, file)
            golden(file).write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
            print(f"recorded {file} ({len(answers)} answers)")
        return
    passed, failed = check_all(
        server,
        files,
        jobs=options.jobs,
        report=lambda outcome: print("\n".join(outcome.lines(options.show)), flush=True),
    )
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
