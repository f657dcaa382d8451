"""Kills a writing process at a random moment, again and again, and checks that no acknowledged write is lost.

    python -m tools.crash_test --rounds 100
    python -m tools.crash_test --during checkpoint --rounds 100
    python -m tools.crash_test --server --rounds 100
    python -m tools.crash_test --server --history=1MiB --rounds 100

Each round starts a child that opens the SQLite store and writes concurrently (creates, updates, deletes, compactions),
printing each write once it is acknowledged. The parent sends SIGKILL, opens the file and checks it against all that
was ever acknowledged (`Ledger`). The machine's own power is not cut: that is what fsync and synchronous=FULL are for.

After each kill bits are turned in copies of the file and its log, one a copy: each is refused, or has all that was
acknowledged. What is salvaged of one that is refused has nothing that was not written.

With --during the child kills itself, at most 2 ms after SQLite has begun one of the statements of that kind.

With --server the child is `steersman serve`, and clients in the parent write ConfigMaps over HTTPS; after the kill the
file is checked in the same way, and so is what the server answers that is started on it next. With --history it keeps
history besides: each acknowledged write that is not compacted has its time and its user.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import copy
import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steersman.storage.interface import Storage, StorageFormatError, StorageUnavailable
from steersman.storage.origins import decode_record
from steersman.storage.sqlite import SQLiteStorage
from steersman.storage.sqlite.salvage import salvage
from steersman.testing import BlockingClient, ServerNotReady, ServerProcess

WRITERS = 16
KEYS_PER_WRITER = 20
CLIENTS = 8
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
STORED_CONFIGMAPS = "/registry/configmaps/default/"
LABEL = "crash-test"
FLIPPED = 4
"""Copies with a turned bit, a round."""
STATEMENTS = {
    "checkpoint": "PRAGMA wal_checkpoint",
    "compaction": "DELETE FROM log",
    "vacuum": "PRAGMA incremental_vacuum",
    "commit": "COMMIT",
}
"""Beginnings of the statements during which a child may be killed."""
FREED = 500
"""Values of 20 KB that a child first writes and deletes, so that there are pages to give back."""
MOST_SECONDS = 10.0
"""Time after which a child is killed that has not reached its statement."""


class CrashTestFailed(Exception):
    """The store broke a promise."""


@dataclass
class Ledger:
    """Acknowledged writes, compared with a reopened store.

    Each key is written by one writer, one write at a time. So it holds its last acknowledged write or, if the writer
    was killed during the next one, that one.
    """

    latest: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By key: the revision and digest of the last write acknowledged; an empty digest is a delete."""
    revisions: dict[int, str] = field(default_factory=dict)
    """By revision: whose it was."""
    acknowledged: int = 0
    """Number of acknowledged writes."""
    newest: int = 0
    floor: int = 0
    """The revision the store was at when it was last opened and checked: every later write has a greater one."""

    def acknowledge(self, line: str) -> None:
        """Takes a line `[key, revision, digest]`. Raises CrashTestFailed if its revision was given out before.

        A delete whose revision the writer is not told has the revision null.
        """
        key, revision, digest = json.loads(line)
        self.acknowledged += 1
        if revision is None:
            self.latest[key] = (self.latest.get(key, (0, ""))[0], digest)
            return
        if revision in self.revisions:
            raise CrashTestFailed(f"revision {revision} given to {key} and to {self.revisions[revision]}")
        if revision <= self.floor:
            raise CrashTestFailed(f"revision {revision} given to {key}, but the store was at {self.floor} before")
        if revision <= self.latest.get(key, (0, ""))[0]:
            raise CrashTestFailed(f"{key} went back to revision {revision} from {self.latest[key][0]}")
        self.revisions[revision] = key
        self.latest[key] = (revision, digest)
        self.newest = max(self.newest, revision)

    async def check(self, store: Storage, prefix: str = "/", digest_of: Callable[[bytes], str] | None = None) -> None:
        """Raises CrashTestFailed unless the store holds everything that was acknowledged.

        All keys begin with `prefix`; `digest_of` makes of a stored value what was acknowledged (by default `digest`).
        """
        digest_of = digest_of or digest
        if store.revision < self.newest:
            raise CrashTestFailed(f"the store is at {store.revision}, {self.newest} was acknowledged")
        found = {item.key: item for item in (await store.range(prefix)).items}
        for key, item in found.items():
            if item.mod_revision > store.revision:
                raise CrashTestFailed(f"{key} is at {item.mod_revision}, the store at {store.revision}")
            owner = self.revisions.get(item.mod_revision, key)
            if owner != key:
                raise CrashTestFailed(f"revision {item.mod_revision} of {key} was acknowledged for {owner}")
        for key, (revision, expected) in self.latest.items():
            held = found.get(key)
            if held is None:
                # Deleted, and that acknowledged; or being deleted when the process was killed.
                if expected and not await self._deleted_later(store, key, revision):
                    raise CrashTestFailed(f"{key}, acknowledged at {revision}, is lost")
            elif held.mod_revision < revision:
                raise CrashTestFailed(f"{key} is at {held.mod_revision}, {revision} was acknowledged")
            elif held.mod_revision == revision and digest_of(held.value) != expected:
                raise CrashTestFailed(f"{key} at {revision} is not what was acknowledged")
        # A write that is found without an acknowledgement counts from now on.
        self.latest = {key: (item.mod_revision, digest_of(item.value)) for key, item in found.items()}
        self.revisions |= {item.mod_revision: key for key, item in found.items()}
        self.newest = self.floor = store.revision

    async def _deleted_later(self, store: Storage, key: str, revision: int) -> bool:
        """Return True if the store has a deletion of `key` after `revision`, among the writes that the kill cut off."""
        deleted: list[int] = []
        subscription = await store.subscribe(
            key,
            after_revision=max(revision, store.revision - 4 * WRITERS),
            deliver=lambda events: deleted.extend(
                event.revision for event in events if event.key == key and event.current is None
            ),
        )
        subscription.cancel()
        return len(deleted) == 1


def digest(value: bytes) -> str:
    return hashlib.blake2b(value, digest_size=8).hexdigest()


def die_during(statement: str, chance: random.Random) -> None:
    """Have this process kill itself shortly after a statement that begins so has begun, some time from now."""
    connect = sqlite3.connect
    left = chance.randrange(1, 12)

    def begun(text: str) -> None:
        nonlocal left
        if not text.lstrip().startswith(statement):
            return
        left -= 1
        if not left:
            threading.Timer(chance.uniform(0.0, 0.002), os.kill, (os.getpid(), signal.SIGKILL)).start()

    def connect_traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.set_trace_callback(begun)
        return connection

    sqlite3.connect = connect_traced  # type: ignore[assignment]


async def write_forever(path: str, *, frees_pages: bool) -> None:
    """Write, side by side, each writer with keys of its own, until killed: the child's work."""
    store = await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0)
    os.write(1, b"ready\n")

    async def write(writer: int) -> None:
        chance = random.Random()
        while True:
            key = f"/{writer}/{chance.randrange(KEYS_PER_WRITER)}"
            current = await store.get(key)
            value = chance.randbytes(chance.choice([20, 1000, 1000, 1000, 20_000]))
            if current is None:
                written = await store.create(key, value)
                line = [key, written.mod_revision, digest(value)]
            elif chance.random() < 0.2:
                event = await store.delete(key, expected_revision=current.mod_revision)
                line = [key, event.revision, ""]
            else:
                written = await store.update(key, value, expected_revision=current.mod_revision)
                line = [key, written.mod_revision, digest(value)]
            # One write of less than PIPE_BUF bytes: a line is there whole or not at all.
            os.write(1, json.dumps(line).encode() + b"\n")

    async def compact() -> None:
        while True:
            await asyncio.sleep(0.05)
            await store.compact(max(store.revision - 500, 1))

    async def free_pages() -> None:
        keys = [f"/freed/{number}" for number in range(FREED)]
        for key in keys:
            if (current := await store.get(key)) is None:
                current = await store.create(key, random.randbytes(20_000))
                os.write(1, json.dumps([key, current.mod_revision, digest(current.value)]).encode() + b"\n")
        for key in keys:
            if (current := await store.get(key)) is not None:
                event = await store.delete(key, expected_revision=current.mod_revision)
                os.write(1, json.dumps([key, event.revision, ""]).encode() + b"\n")

    beside = [free_pages()] if frees_pages else []
    await asyncio.gather(compact(), *beside, *(write(writer) for writer in range(WRITERS)))


def run_child(path: Path, chance: random.Random, during: str = "") -> list[str]:
    """Let a child write until it is killed at a random moment, or `during` a statement; return the lines it printed."""
    command = [sys.executable, os.path.abspath(__file__), "--child", str(path)]
    if during:
        command += ["--during", during, "--seed", str(chance.getrandbits(32))]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)
    seconds = MOST_SECONDS if during else chance.uniform(0.0, 0.5)
    assert child.stdout is not None
    with child.stdout as output:
        lines = lines_until_killed(child, output.fileno(), lambda: time.monotonic() + seconds)
    if not lines or lines[0] != "ready":
        raise CrashTestFailed(f"the writer did not start (exit code {child.returncode})")
    return lines[1:]


def lines_until_killed(child: subprocess.Popen[bytes], output: int, decide: Callable[[], float]) -> list[str]:
    """All lines of a child that is killed at the moment that `decide` names once the first of them is there.

    The pipe is read here alone: a buffer over it would swallow what came together with the first line.
    """
    received = b""
    while b"\n" not in received:
        data = os.read(output, 1 << 16)
        if not data:
            break
        received += data
    deadline = decide()
    os.set_blocking(output, False)
    while time.monotonic() < deadline:
        try:
            data = os.read(output, 1 << 16)
        except BlockingIOError:
            time.sleep(0.001)
            continue
        if not data:  # it has killed itself
            break
        received += data
    child.send_signal(signal.SIGKILL)
    child.wait()
    os.set_blocking(output, True)
    while data := os.read(output, 1 << 16):
        received += data
    return received.decode().splitlines()


async def run_rounds(path: Path, rounds: int, seed: int, *, during: str = "", verbose: bool = False) -> Ledger:
    """Kill `rounds` writers of one file, checking after each, and return what they wrote. Raises CrashTestFailed."""
    chance = random.Random(seed)
    ledger = Ledger()
    for number in range(1, rounds + 1):
        lines = await asyncio.to_thread(run_child, path, chance, during)
        # Writers print in the order their tasks wake, which is that of revisions for each key.
        for line in lines:
            ledger.acknowledge(line)
        refused = sum([await check_flipped(path, ledger, chance) for _ in range(FLIPPED)])
        started = time.perf_counter()
        store = await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0)
        opened = time.perf_counter() - started
        try:
            await ledger.check(store)
        finally:
            await store.close()
        if verbose:
            print(
                f"round {number}: {len(lines)} writes acknowledged, reopened at revision {ledger.newest} "
                f"in {opened * 1000:.1f} ms; of {FLIPPED} copies with a turned bit {refused} were refused",
                flush=True,
            )
    return ledger


async def check_flipped(path: Path, ledger: Ledger, chance: random.Random) -> bool:
    """Turns a bit in a copy of what a killed process has left; True if it is refused. Raises CrashTestFailed."""
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(f"{path}{suffix}", directory)
        spoilt = Path(directory) / path.name
        log = spoilt.with_name(f"{spoilt.name}-wal")
        flipped = chance.choice([spoilt, log, log]) if log.exists() and log.stat().st_size else spoilt
        at = chance.randrange(flipped.stat().st_size)
        with flipped.open("r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << chance.randrange(8)]))
        told = copy.deepcopy(ledger)
        try:
            store = await SQLiteStorage.open(spoilt, compaction_interval=0, lease_interval=0)
        except (StorageFormatError, StorageUnavailable):
            await check_salvaged(spoilt, told)
            return True
        try:
            await told.check(store)
        except StorageUnavailable:  # of a large file values are looked at when they are read
            return True
        except CrashTestFailed as failure:
            raise CrashTestFailed(f"with a bit turned at {at} of {flipped.name}: {failure}") from failure
        finally:
            await store.close()
        return False


async def check_salvaged(path: Path, ledger: Ledger) -> None:
    """Salvages a damaged file: its values were written, and no revision is given again. Raises CrashTestFailed."""
    try:
        salvage(path)
    except StorageFormatError:
        return  # its header is damaged, so that nobody knows that it is ours
    store = await SQLiteStorage.open(path, compaction_interval=0, lease_interval=0)
    try:
        if store.revision <= ledger.newest:
            raise CrashTestFailed(f"what was salvaged is at {store.revision}, {ledger.newest} was acknowledged")
        for item in (await store.range("/")).items:
            revision, expected = ledger.latest.get(item.key, (0, ""))
            if item.mod_revision == revision and digest(item.value) != expected:
                raise CrashTestFailed(f"{item.key} at {revision} is not what was acknowledged, after salvaging")
    finally:
        await store.close()


def configmap_digest(value: bytes) -> str:
    """The digest of a stored ConfigMap: of the one datum that the clients write."""
    return digest(json.loads(value)["data"]["value"].encode())


def make_configmap(name: str, chance: random.Random) -> dict[str, Any]:
    value = chance.randbytes(chance.choice([20, 500, 500, 10_000])).hex()
    return {"metadata": {"name": name, "labels": {LABEL: ""}}, "data": {"value": value}}


class Writer(threading.Thread):
    """A client that creates, updates and deletes ConfigMaps of its own until the server is gone."""

    def __init__(self, client: BlockingClient, number: int, known: dict[str, str]) -> None:
        """`known` holds the resourceVersion of each ConfigMap that is there, by its name."""
        super().__init__(daemon=True)
        self.lines: list[str] = []
        self.failure = ""
        self._client = client
        self._names = [f"w{number}-{key}" for key in range(KEYS_PER_WRITER)]
        self._known = {name: known[name] for name in self._names if name in known}
        self._chance = random.Random()

    def run(self) -> None:
        try:
            while not self.failure:
                self._write(self._chance.choice(self._names))
        except (OSError, http.client.HTTPException):
            pass  # the server was killed
        finally:
            self._client.close()

    def _write(self, name: str) -> None:
        version = self._known.get(name)
        if version is not None and self._chance.random() < 0.2:
            status, answer = self._client.json("DELETE", f"{CONFIGMAPS}/{name}")
            if status == 200:
                del self._known[name]
                self._acknowledged(name, None, "")
        else:
            body = make_configmap(name, self._chance)
            if version is None:
                status, answer = self._client.json("POST", CONFIGMAPS, body)
            else:
                body["metadata"]["resourceVersion"] = version
                status, answer = self._client.json("PUT", f"{CONFIGMAPS}/{name}", body)
            if status in (200, 201):
                self._known[name] = answer["metadata"]["resourceVersion"]
                self._acknowledged(name, int(self._known[name]), digest(body["data"]["value"].encode()))
        if status not in (200, 201):
            self.failure = f"{name}: {status} {answer.get('message')}"

    def _acknowledged(self, name: str, revision: int | None, value: str) -> None:
        self.lines.append(json.dumps([STORED_CONFIGMAPS + name, revision, value]))


def write_and_kill(server: ServerProcess, known: dict[str, str], chance: random.Random) -> list[str]:
    """Clients write until the server is killed at a random moment; what it acknowledged. Raises CrashTestFailed."""
    writers = [Writer(server.client(), number, known) for number in range(CLIENTS)]
    for writer in writers:
        writer.start()
    time.sleep(chance.uniform(0.0, 0.5))
    server.kill()
    for writer in writers:
        writer.join()
        if writer.failure:
            raise CrashTestFailed(f"a write was refused: {writer.failure}")
    return [line for writer in writers for line in writer.lines]


def served(server: ServerProcess) -> dict[str, tuple[int, str]]:
    """Return the revision and digest of every key that the server answers with, as in Ledger.latest."""
    with server.client() as client:
        status, listed = client.json("GET", f"{CONFIGMAPS}?labelSelector={LABEL}")
    if status != 200:
        raise CrashTestFailed(f"the list was answered with {status}: {listed}")
    return {
        STORED_CONFIGMAPS + each["metadata"]["name"]: (
            int(each["metadata"]["resourceVersion"]),
            digest(each["data"]["value"].encode()),
        )
        for each in listed["items"]
    }


def start_and_compare(server: ServerProcess, ledger: Ledger) -> float:
    """Starts the server: it answers what its file holds; the seconds until it was ready. Raises CrashTestFailed."""
    seconds = server.start()
    answers = served(server)
    if answers != ledger.latest:
        odd = sorted(key for key in answers.keys() | ledger.latest.keys() if answers.get(key) != ledger.latest.get(key))
        raise CrashTestFailed(f"the server answers otherwise than its file says of {', '.join(odd[:5])}")
    return seconds


def check_history(file: Path) -> int:
    """Return the number of writes whose records a file has. Raises CrashTestFailed for a write without one."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        (compact,) = connection.execute("SELECT compact_revision FROM meta").fetchone()
        found = connection.execute(
            "SELECT revision, key, record FROM log WHERE revision > ? AND key LIKE ? ORDER BY revision",
            (compact, f"{STORED_CONFIGMAPS}%"),
        ).fetchall()
    last = 0
    for revision, key, text in found:
        record = decode_record(text)
        if record is None or not record.origin.user:
            raise CrashTestFailed(f"revision {revision} of {key} has no record of its user")
        if record.milliseconds < last:
            raise CrashTestFailed(f"revision {revision} of {key} is older than the one before it")
        last = record.milliseconds
    return len(found)


async def run_server_rounds(
    folder: Path, rounds: int, seed: int, *, history: str = "", verbose: bool = False
) -> Ledger:
    """Kills `rounds` servers on one data folder, checking after each. Raises CrashTestFailed and ServerNotReady.

    `history` is the value of --history of the servers, "" for none.
    """
    chance = random.Random(seed)
    ledger = Ledger()
    server = ServerProcess(folder, f"--history={history}" if history else "--etcd-compaction-interval=1s")
    for number in range(1, rounds + 1):
        ready = start_and_compare(server, ledger)
        known = {key.removeprefix(STORED_CONFIGMAPS): str(revision) for key, (revision, _) in ledger.latest.items()}
        lines = await asyncio.to_thread(write_and_kill, server, known, chance)
        for line in lines:
            ledger.acknowledge(line)
        store = await SQLiteStorage.open(folder / "steersman.db", compaction_interval=0, lease_interval=0)
        try:
            await ledger.check(store, STORED_CONFIGMAPS, configmap_digest)
        finally:
            await store.close()
        records = check_history(folder / "steersman.db") if history else 0
        if verbose:
            print(
                f"round {number}: ready in {ready * 1000:.0f} ms, {len(lines)} writes acknowledged, the file is at "
                f"revision {ledger.newest}" + (f", {records} records" if history else ""),
                flush=True,
            )
    start_and_compare(server, ledger)
    if server.stop() != 0:
        raise CrashTestFailed("the last server did not stop in order")
    return ledger


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None, help="of the moments of death (default: another each time)")
    parser.add_argument("--server", action="store_true", help="kill whole servers, with clients over HTTPS")
    parser.add_argument("--history", default="", help="with --server: bounds of the history that the servers keep")
    parser.add_argument("--during", choices=sorted(STATEMENTS), default="", help="kill writers during such a statement")
    parser.add_argument("--child", metavar="PATH", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        if options.during:
            die_during(STATEMENTS[options.during], random.Random(options.seed))
        asyncio.run(write_forever(options.child, frees_pages=options.during == "vacuum"))
        return
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as directory:
        try:
            folder = Path(directory)
            if options.server:
                ledger = asyncio.run(
                    run_server_rounds(folder / "data", options.rounds, seed, history=options.history, verbose=True)
                )
            else:
                path, during = folder / "store.db", options.during
                ledger = asyncio.run(run_rounds(path, options.rounds, seed, during=during, verbose=True))
        except (CrashTestFailed, ServerNotReady) as failure:
            sys.exit(f"FAILED: {failure}")
    print(f"{options.rounds} rounds, {ledger.acknowledged} writes acknowledged: nothing was lost")


if __name__ == "__main__":
    main()
