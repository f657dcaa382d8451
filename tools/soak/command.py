"""Random writes, and informers that follow them as client-go's do: each has to know in the end what is there.

    python -m tools.soak --minutes 10
    python -m tools.soak --minutes 5 --restart
    python -m tools.soak --minutes 5 --restart --on-etcd steersman,kubernetes
    python -m tools.soak --url https://127.0.0.1:6443 --ca ca.crt --token TOKEN

Writers create, update, patch and delete ConfigMaps, Secrets, Services, Deployments and Events in several namespaces:
some objects have one writer, which knows what they must be, others are fought over. Informers list and watch, over
HTTP/1.1 and HTTP/2, with and without selectors; some read slowly, and now and then one is killed and goes on later:
anew, from where it was, or from where it was some time ago. Every event is held against what the informer knows
(informer.py). In the end what every informer knows is compared with a list, and every acknowledged write must
be in what each informer was told. With --restart the server is killed (SIGKILL, at times SIGTERM) and started again.

Without --url the server is `steersman serve` on a fresh folder. With --on-etcd it is several on one etcd, of this
project and kube-apiserver: each request of a client goes to the next of them, so that a list is of one, its next page
or the watch that follows of another, and what was written by one is changed by another; --restart ends one at a time.
Exits with 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import random
import ssl
import sys
import tempfile
import time
import urllib.parse
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from steersman.testing import ServerNotReady, ServerProcess
from tools.one_etcd.servers import ServersOnEtcd, names

from .http_client import Client, ConnectionLost, Endpoint, Http1Client, Http2Client, InTurn
from .informer import BrokenPromise, Habits, Informer, Key, Object, Scope, View, ask, key_of
from .writers import KINDS, NAMESPACES, Kind, Ledger, Writer

WRITERS = 6
CATCH_UP = 60.0
"""Seconds that informers have to learn of the last writes."""
HTTP2_CONNECTIONS = 2


def labels_of(obj: Object) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


LABEL_SELECTORS: dict[str, Callable[[Object], bool]] = {
    "color=red": lambda obj: labels_of(obj).get("color") == "red",
    "color!=red": lambda obj: labels_of(obj).get("color") != "red",
    "color in (red,green)": lambda obj: labels_of(obj).get("color") in ("red", "green"),
    "!color": lambda obj: "color" not in labels_of(obj),
    "color,color notin (blue)": lambda obj: labels_of(obj).get("color", "blue") != "blue",
}
FIELD_SELECTORS: dict[str, dict[str, Callable[[Object], bool]]] = {
    "configmaps": {
        "metadata.name=shared-0": lambda obj: obj["metadata"]["name"] == "shared-0",
        "metadata.namespace!=soak-a": lambda obj: obj["metadata"]["namespace"] != "soak-a",
    },
    "secrets": {"type=Opaque": lambda obj: obj["type"] == "Opaque"},
    "services": {"spec.clusterIP=None": lambda obj: obj["spec"].get("clusterIP") == "None"},
    "events": {
        "type=Warning": lambda obj: obj["type"] == "Warning",
        "reason=Failed,involvedObject.name!=pod-1": lambda obj: (
            obj["reason"] == "Failed" and obj["involvedObject"]["name"] != "pod-1"
        ),
    },
}


def of_all(endpoints: Sequence[Endpoint], make: Callable[[Endpoint], Client]) -> Client:
    """A client of a server, or of several in turn."""
    clients = [make(each) for each in endpoints]
    return clients[0] if len(clients) == 1 else InTurn(clients)


class Crowd:
    """The informers, each a task that is killed and goes on now and then."""

    def __init__(
        self, endpoints: Sequence[Endpoint], size: int, ledger: Ledger, counts: Counter[str], chance: random.Random
    ) -> None:
        self._endpoints = endpoints
        self._ledger = ledger
        self._counts = counts
        self._chance = chance
        self._http2: list[Client] = [of_all(endpoints, Http2Client) for _ in range(HTTP2_CONNECTIONS)]
        self.members = [self._member(number) for number in range(size)]
        self.clients = {informer.client for _, informer in self.members}

    def _member(self, number: int) -> tuple[Kind, Informer]:
        chance = random.Random(self._chance.random())
        kind = KINDS[number % len(KINDS)]
        # Four informers of each kind: two follow all of it, one selects by field if it can, one by label.
        turn = number // len(KINDS) % 4
        path = kind.path("" if turn < 2 else chance.choice(["", *NAMESPACES]))
        scope = Scope(path, kind.api_version, kind.kind, metadata_only=number % 4 == 3)
        fields = FIELD_SELECTORS.get(kind.plural, {})
        if turn == 2 and fields and not scope.metadata_only:
            selector, selects = chance.choice(list(fields.items()))
            scope = dataclasses.replace(scope, field_selector=selector, selects=selects)
        elif turn >= 2:
            selector, selects = chance.choice(list(LABEL_SELECTORS.items()))
            scope = dataclasses.replace(scope, label_selector=selector, selects=selects)
        slow = turn == 1 and kind.plural in ("configmaps", "secrets")
        habits = Habits(
            watch_list=number % 2 == 1,
            first_version=chance.choice(["0", ""]),
            page=chance.choice([500, 500, 7]),
            seconds=(11, 20) if slow else chance.choice([(5, 10), (5, 10), (11, 16)]),
            pause=chance.choice([0.1, 0.5]) if slow else 0.0,
            audit=0.02,
            several=len(self._endpoints) > 1,
        )
        http1, shared = of_all(self._endpoints, Http1Client), self._http2[number % HTTP2_CONNECTIONS]
        client = http1 if number % 3 == 0 else shared
        return kind, Informer(client, scope, habits, self._counts, chance)

    async def run(self, seconds_between_kills: float) -> None:
        """All of them, until cancelled. Raises BrokenPromise."""
        async with asyncio.TaskGroup() as group:
            for kind, informer in self.members:
                group.create_task(self._live(kind, informer, seconds_between_kills))

    def check(self, kind: Kind, informer: Informer) -> None:
        """Holds what it was told against the ledger. Raises BrokenPromise."""
        self._counts["writes that informers were told of"] += self._ledger.check(kind, informer.view)

    async def _live(self, kind: Kind, informer: Informer, seconds_between_kills: float) -> None:
        chance = random.Random(self._chance.random())
        past = deque([informer.view.copy()], maxlen=4)
        while True:
            try:
                async with asyncio.timeout(chance.expovariate(1 / seconds_between_kills)):
                    await informer.run()
            except TimeoutError:
                if informer.hurry.is_set():
                    continue
            self._counts["informers killed"] += 1
            self.check(kind, informer)
            await asyncio.sleep(chance.uniform(0, 2))
            if informer.hurry.is_set():
                continue
            # It forgets everything, or goes on from where it was, or from where it was when it was killed at some time
            # before; slow ones always go back, so as to have much to catch up on.
            slow, how = informer.habits.pause > 0, chance.random()
            past.append(informer.view.copy())
            if slow:
                informer.view = past[-2].copy()
            elif how < 0.3:
                informer.view = View(informer.view.scope)
            elif how < 0.6:
                informer.view = chance.choice(past).copy()

    def hurry(self) -> None:
        """From now on all read as fast as they can, and live."""
        for _, informer in self.members:
            informer.hurry.set()


class Soak:
    """One run against a server, or several with the same objects."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        informers: int,
        rate: float,
        kills: float = 30.0,
        seed: int | None = None,
    ) -> None:
        """`rate` is that of all writes together, a second; `kills` the mean life of an informer in seconds."""
        self.counts: Counter[str] = Counter()
        self._rate = rate
        self._kills = kills
        self._ledger = Ledger()
        chance = random.Random(seed)
        name = f"writer-{chance.randbytes(3).hex()}"  # of this run: others may have left objects behind
        self._client = of_all(endpoints, Http1Client)
        self._crowd = Crowd(endpoints, informers, self._ledger, self.counts, chance)
        self._writers = [
            Writer(
                of_all(endpoints, Http1Client if number % 2 else Http2Client),
                f"{name}-{number}",
                self._ledger,
                self.counts,
                random.Random(chance.random()),
            )
            for number in range(WRITERS)
        ]
        self._clients = {self._client, *(writer.client for writer in self._writers), *self._crowd.clients}

    async def run(self, seconds: float) -> None:
        """Raises BrokenPromise, as an ExceptionGroup."""
        try:
            await self._make_namespaces()
            async with asyncio.TaskGroup() as group:
                crowd = group.create_task(self._crowd.run(self._kills))
                await self._write(seconds)
                self._crowd.hurry()
                await self._compare()
                crowd.cancel()
        finally:
            for client in self._clients:
                await client.close()

    async def _make_namespaces(self) -> None:
        for name in NAMESPACES:
            body = json.dumps({"metadata": {"name": name}}).encode()
            status, answer = await ask(
                self._client, "POST", "/api/v1/namespaces", body, content_type="application/json"
            )
            if status not in (201, 409):
                raise BrokenPromise(f"namespace {name} was answered {answer}")

    async def _write(self, seconds: float) -> None:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for writer in self._writers:
                group.create_task(writer.run(len(self._writers) / self._rate, stop))
            await asyncio.sleep(seconds)
            stop.set()

    async def _list(self, target: str, accept: str = "application/json") -> dict[Key, Object]:
        while True:
            try:
                status, answer = await ask(self._client, "GET", target, accept=accept)
            except ConnectionLost:
                await asyncio.sleep(0.1)
                continue
            if status == 200:
                for obj in answer["items"]:
                    obj.pop("kind", None), obj.pop("apiVersion", None)
                return {key_of(obj): obj for obj in answer["items"]}
            if status not in (429, 503):
                raise BrokenPromise(f"GET {target} was answered {answer}")

    async def _compare(self) -> None:
        """Check that the server's objects are those that the writers and the informers know."""
        everything = {kind: await self._list(kind.path()) for kind in KINDS}
        for writer in self._writers:
            for kind, listed in everything.items():
                writer.check(kind, listed)
        deadline = time.monotonic() + CATCH_UP
        for kind, informer in self._crowd.members:
            scope = informer.view.scope
            listed = await self._list(scope.target(), scope.accept("List"))
            if not scope.metadata_only:
                selected = {
                    key: obj
                    for key, obj in everything[kind].items()
                    if scope.selects(obj) and scope.namespace in ("", key[0])
                }
                if selected != listed:
                    raise BrokenPromise(f"{scope}: the list is {listed.keys()}, of all these are {selected.keys()}")
            while different := informer.view.compare(listed):
                if time.monotonic() > deadline:
                    raise BrokenPromise(f"{scope}, {CATCH_UP} s after the last write: {different}")
                await asyncio.sleep(0.1)
            self._crowd.check(kind, informer)
            self.counts["objects compared"] += len(listed)


class Restartable(Protocol):
    """A server: `ServerProcess`, or one of several on an etcd."""

    errors: Path

    def start(self) -> float: ...

    def stop(self) -> int: ...

    def kill(self) -> None: ...


async def restart(servers: Sequence[Restartable], every: float, counts: Counter[str], chance: random.Random) -> None:
    """Kills a server now and then, and starts it again; until cancelled. Raises ServerNotReady."""
    while True:
        await asyncio.sleep(chance.uniform(0.5, 1.5) * every)
        server, orderly = chance.choice(servers), chance.random() < 0.25
        restarting = asyncio.ensure_future(asyncio.to_thread(_restart, server, orderly=orderly))
        try:
            await asyncio.shield(restarting)
        except asyncio.CancelledError:
            await restarting  # what is begun is completed: the end of a run needs a server
            raise
        counts["restarts"] += 1


def _restart(server: Restartable, *, orderly: bool) -> None:
    if orderly:
        server.stop()
    else:
        server.kill()
    server.start()


def endpoint_of(server: ServerProcess) -> Endpoint:
    """Its administrator's way in, wherever it listens after a restart."""
    return Endpoint(lambda: server.address, lambda protocols: server.context(alpn=protocols))


def endpoints_of(several: ServersOnEtcd) -> list[Endpoint]:
    """The administrator's way in to each of several servers, past the address that they have together."""
    addresses = [each.address for each in several.servers]
    return [Endpoint(lambda address=address: address, several.context) for address in addresses]  # type: ignore[misc]


def endpoint_at(url: str, ca: str, token: str) -> Endpoint:
    """The way in to a server that runs already."""
    parts = urllib.parse.urlsplit(url)
    address = parts.hostname or "", parts.port or 443

    def context(protocols: tuple[str, ...]) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=ca)
        made.set_alpn_protocols(list(protocols))
        return made

    return Endpoint(lambda: address, context, {"authorization": f"Bearer {token}"} if token else {})


async def run_with_restarts(
    run: Soak, seconds: float, servers: Sequence[Restartable], every: float, chance: random.Random
) -> None:
    """Runs it, and restarts one of its servers every so many seconds."""
    async with asyncio.TaskGroup() as group:
        restarting = group.create_task(restart(servers, every, run.counts, chance))
        running = group.create_task(run.run(seconds))
        await asyncio.sleep(seconds)
        restarting.cancel()
        await running


def started(
    options: argparse.Namespace, folder: Path, stack: ExitStack
) -> tuple[Sequence[Restartable], Sequence[Endpoint]]:
    """The servers of a run, none if one was there before, and the ways in. Raises ServerNotReady, LookupError."""
    if options.url:
        return [], [endpoint_at(options.url, options.ca, options.token)]
    compaction = f"--etcd-compaction-interval={options.compaction}"
    if options.on_etcd:
        several = stack.enter_context(ServersOnEtcd(folder, options.on_etcd, [compaction]))
        return several.servers, endpoints_of(several)
    server = ServerProcess(folder / "data", compaction)
    stack.callback(server.kill)
    server.start()
    return [server], [endpoint_of(server)]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--informers", type=int, default=20)
    parser.add_argument("--rate", type=float, default=60, help="writes a second, all writers together")
    parser.add_argument("--kills", type=float, default=30, help="the mean life of an informer in seconds")
    parser.add_argument("--restart", action="store_true", help="kill the server now and then, and start it again")
    parser.add_argument("--restart-every", type=float, default=20, metavar="SECONDS")
    parser.add_argument("--compaction", default="60s", help="--etcd-compaction-interval of the server")
    parser.add_argument("--on-etcd", type=names, metavar="LIST", help="several servers on one etcd, with commas")
    parser.add_argument("--url", help="of a server that runs already")
    parser.add_argument("--ca", help="the file of its authority")
    parser.add_argument("--token", default="", help="of an administrator of it")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    if options.url and (options.restart or options.on_etcd or not options.ca):
        parser.error("--url needs --ca, and allows no --restart and no --on-etcd")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    seconds = options.minutes * 60
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        try:
            servers, endpoints = started(options, Path(directory), stack)
        except LookupError as missing:
            sys.exit(str(missing))
        run = Soak(endpoints, informers=options.informers, rate=options.rate, kills=options.kills, seed=seed)
        failures: list[Exception] = []
        try:
            if options.restart:
                asyncio.run(run_with_restarts(run, seconds, servers, options.restart_every, random.Random(seed)))
            else:
                asyncio.run(run.run(seconds))
        except* (BrokenPromise, ServerNotReady) as group:
            failures += leaves(group)
        for server in servers:
            if not failures and server.stop() != 0:
                failures.append(ServerNotReady("a server did not stop in order"))
        if failures:
            for path in {server.errors for server in servers}:
                print(path.read_text()[-5000:], file=sys.stderr)
    for name, count in sorted(run.counts.items()):
        print(f"{count:9,} {name}")
    if failures:
        sys.exit("\n".join(f"FAILED: {failure}" for failure in failures))
    print("every informer knows what is there")


def leaves(group: BaseExceptionGroup[Exception]) -> list[Exception]:
    """The exceptions in groups of groups."""
    return [
        leaf for each in group.exceptions for leaf in (leaves(each) if isinstance(each, BaseExceptionGroup) else [each])
    ]
