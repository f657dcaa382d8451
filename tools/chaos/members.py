"""Members of an etcd cluster as processes, each behind proxies: what the faults are done to."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

from tools.chaos.proxy import Proxy
from tools.chaos.wires import Wires

SIZE: Final = 3
_START_SECONDS: Final = 60.0
_ASKED_SECONDS: Final = 10.0
_DISK: Final = 320 << 20
"""Bytes of a member's own disk: two segments of its log and a database of some MiB."""


def program() -> str:
    """Return the path of etcd, in $STEERSMAN_REFERENCE or in PATH. Ends the program without one."""
    folders = (os.environ.get("STEERSMAN_REFERENCE", ""), os.environ.get("PATH", ""))
    path = shutil.which("etcd", path=os.pathsep.join(filter(None, folders)))
    if path is None:
        sys.exit("etcd is needed: put it in PATH, or its folder in STEERSMAN_REFERENCE")
    return path


def free_port() -> int:
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return int(each.getsockname()[1])


class Member:
    """One process of etcd. Other members come to it by way of `peers`, servers by `Cluster.between`."""

    def __init__(self, name: str, folder: Path, *, own_disk: bool, wires: Wires | None) -> None:
        """With `own_disk` its data lie on a small file system, which takes the rights of root. With `wires` it has a
        machine of its own on them."""
        self.name = name
        self.folder = folder
        self.machine = wires.machine(name) if wires is not None else None
        self._host = self.machine.address if self.machine is not None else "127.0.0.1"
        self._log = folder.with_name(f"{name}.log")
        self.port, self._peer_port = free_port(), free_port()
        self.peers = self.proxied(self._peer_port, wires)
        self.id = ""
        """Hexadecimal ID by which its peers know the member."""
        self._process: subprocess.Popen[bytes] | None = None
        self._disk = folder.with_name(f"{folder.name}-disk") if own_disk else None

    def proxied(self, port: int, wires: Wires | None) -> Proxy:
        """Return the proxy before one of its ports."""
        return Proxy(port, host=self._host, address=wires.own_address() if wires is not None else "127.0.0.1")

    def mount(self) -> None:
        """Makes its disk, if it has one. Raises CalledProcessError without the rights."""
        if self._disk is not None:
            self._disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "chaos", self._disk], check=True)
            self.folder = self._disk / "data"

    def unmount(self) -> None:
        """Lets its disk go."""
        if self._disk is not None and os.path.ismount(self._disk):
            subprocess.run(["umount", self._disk], check=True)

    @property
    def _url(self) -> str:
        return f"http://{self._host}:{self.port}"

    @property
    def has_disk(self) -> bool:
        return self._disk is not None

    def fill_disk(self) -> None:
        """Nothing more can be written."""
        assert self._disk is not None
        try:
            with (self._disk / "filler").open("wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(1 << 16))
        except OSError:
            return

    def free_disk(self) -> None:
        """There is room again."""
        assert self._disk is not None
        (self._disk / "filler").unlink(missing_ok=True)

    @property
    def peer_url(self) -> str:
        return self.peers.url

    @property
    def pid(self) -> int:
        """PID of the process that runs, or ran last."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def launch(self, cluster: str, *, joins: bool = False) -> None:
        """Starts it as one of `cluster`, and does not wait."""
        client, listen = self._url, f"http://{self._host}:{self._peer_port}"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(self.machine.under if self.machine is not None else ()),
                    program(),
                    "--name",
                    self.name,
                    "--data-dir",
                    self.folder,
                    "--log-level",
                    "warn",
                    "--listen-client-urls",
                    client,
                    "--advertise-client-urls",
                    client,
                    "--listen-peer-urls",
                    listen,
                    "--initial-advertise-peer-urls",
                    self.peer_url,
                    "--initial-cluster",
                    cluster,
                    "--initial-cluster-state",
                    "existing" if joins else "new",
                    "--heartbeat-interval",
                    "100",
                    "--election-timeout",
                    "1000",
                ],
                stdout=log,
                stderr=log,
            )

    def signal(self, number: signal.Signals) -> None:
        if self.running and self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and waits until it is gone."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def ask(self, path: str, message: dict[str, Any] | None = None, seconds: float = _ASKED_SECONDS) -> Any:
        """Return the answer of its gateway. Raises OSError, also for a refused request."""
        data = json.dumps(message or {}).encode()
        request = urllib.request.Request(f"{self._url}{path}", data)
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return json.load(answer)

    def is_healthy(self) -> bool:
        """Return True if the member answers and there is a majority."""
        try:
            with urllib.request.urlopen(f"{self._url}/health", timeout=2) as answer:
                return b'"true"' in answer.read()
        except (OSError, ValueError):
            return False

    async def wait_healthy(self) -> None:
        """Raises TimeoutError."""
        until = time.monotonic() + _START_SECONDS
        while not await asyncio.to_thread(self.is_healthy):
            if time.monotonic() > until:
                raise TimeoutError(f"{self.name} is not well after {_START_SECONDS} s; see {self.name}.log")
            await asyncio.sleep(0.1)


class Cluster:
    """Three members, and what lies between them and the servers."""

    def __init__(self, folder: Path, servers: int, *, own_disk: bool, wires: Wires | None = None) -> None:
        self.members = [
            Member(f"m{number}", folder / f"m{number}", own_disk=own_disk and number == SIZE - 1, wires=wires)
            for number in range(SIZE)
        ]
        self.between = [[member.proxied(member.port, wires) for member in self.members] for _ in range(servers)]
        """By server and member."""

    @property
    def proxies(self) -> list[Proxy]:
        return [member.peers for member in self.members] + [each for row in self.between for each in row]

    @property
    def _described(self) -> str:
        return ",".join(f"{each.name}={each.peer_url}" for each in self.members)

    def urls(self, server: int) -> str:
        """Return the value of --etcd-servers for a server."""
        return ",".join(proxy.url for proxy in self.between[server])

    async def start(self) -> None:
        """Starts all, and waits until they are one cluster."""
        for proxy in self.proxies:
            await proxy.start()
        for member in self.members:
            member.mount()
            member.launch(self._described)
        await self.wait_healthy()
        await self._learn()

    async def _learn(self) -> None:
        listed = await self.ask("/v3/cluster/member/list")
        ids = {each["name"]: f"{int(each['ID']):x}" for each in listed["members"] if "name" in each}
        for member in self.members:
            member.id = ids.get(member.name, member.id)

    async def wait_healthy(self) -> None:
        """Raises TimeoutError."""
        for member in self.members:
            await member.wait_healthy()

    async def ask(self, path: str, message: dict[str, Any] | None = None) -> Any:
        """Return the answer of the first member that answers. Raises OSError."""
        failure: OSError = OSError("no member runs")
        for member in self.members:
            try:
                return await asyncio.to_thread(member.ask, path, message)
            except OSError as error:
                failure = error
        raise failure

    async def stop(self) -> None:
        """Ends everything."""
        for member in self.members:
            member.kill()
            member.unmount()
        for proxy in self.proxies:
            await proxy.close()

    # Faults

    def restart(self, member: Member) -> None:
        """Starts one again that was killed."""
        if not member.running:
            member.launch(self._described)

    def isolate(self, member: Member) -> None:
        """Cuts one off from the others; servers still reach it."""
        member.peers.hold()
        for other in self.members:
            if other is not member:
                other.peers.shun(frozenset({member.id}))

    def part(self, one: Member, other: Member) -> None:
        """Two members do not hear each other, and the third hears both."""
        one.peers.shun(frozenset({other.id}))
        other.peers.shun(frozenset({one.id}))

    async def compact(self) -> int:
        """Forgets everything but what is there now; the revision. Raises OSError."""
        found = await self.ask("/v3/kv/range", {"key": "AA==", "serializable": True})
        revision = int(found["header"]["revision"])
        await self.ask("/v3/kv/compaction", {"revision": revision})
        return revision

    async def leader(self) -> Member | None:
        """Raises OSError."""
        status = await self.ask("/v3/maintenance/status")
        return next((each for each in self.members if each.id == f"{int(status.get('leader', 0)):x}"), None)

    async def replace(self, member: Member) -> None:
        """Takes one out of the cluster for ever, and a new one in with an empty folder. Raises OSError if that cannot
        be done for long, as there is no majority."""
        member.kill()
        old, until = member.id, time.monotonic() + 2 * _START_SECONDS
        while True:
            try:
                listed = await self.ask("/v3/cluster/member/list")
                known = [f"{int(each['ID']):x}" for each in listed["members"] if member.peer_url in each["peerURLs"]]
                if known and old not in known:
                    break
                if known:
                    await self.ask("/v3/cluster/member/remove", {"ID": str(int(old, 16))})
                else:
                    await self.ask("/v3/cluster/member/add", {"peerURLs": [member.peer_url]})
            except OSError:  # also while the cluster is not well connected: then it takes nobody in
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(0.5)
        shutil.rmtree(member.folder, ignore_errors=True)
        member.launch(self._described, joins=True)
        await member.wait_healthy()
        await self._learn()
