"""A simulated node, with requests to its kubelet directly and through the API server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from steersman.api.core.v1 import Container, ContainerPort, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.client.client import Client
from steersman.client.resources import PODS, SERVICE_ACCOUNTS
from steersman.cluster.cluster import Cluster
from steersman.net.client.http1 import Http1Answer, send
from steersman.net.client.transport import Address
from steersman.net.spdy import PROTOCOL, Session, Stream
from steersman.net.upgrade import UpgradedConnection
from tests.controllers.waiting import eventually

KUBELET = Address("172.16.0.2", 10250)


class Node:
    """A node of a cluster, with requests to its kubelet directly and through the API server."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client: Client = cluster.client(UserInfo("admin", groups=("system:masters",)), "tests")

    async def pod(
        self,
        name: str,
        *command: str,
        ports: tuple[int, ...] = (),
        annotations: dict[str, str] | None = None,
        image: str = "x",
        labels: dict[str, str] | None = None,
        restart_policy: str = "Always",
        **more: Any,
    ) -> Pod:
        """Create a pod, wait until it runs, and return it."""
        container = Container(
            name="c",
            image=image,
            command=list(command),
            ports=[ContainerPort(container_port=each) for each in ports],
            **more,
        )
        metadata = ObjectMeta(name=name, namespace="default", annotations=annotations or {}, labels=labels or {})

        async def has_account() -> bool:
            return len((await self.client.list(SERVICE_ACCOUNTS, "default")).items) == 1

        await eventually(has_account)
        spec = PodSpec(containers=[container], restart_policy=restart_policy)
        await self.client.create(PODS, Pod(metadata=metadata, spec=spec))

        async def is_running() -> Pod | None:
            pod = await self.client.get(PODS, name, "default")
            return pod if pod.status.phase != "Pending" else None

        found = await eventually(is_running)
        assert found is not None
        return found

    async def logs(self, name: str, query: str = "") -> str:
        """Return the log of a pod, read through the API server."""
        return (await self.client.request("GET", f"/api/v1/namespaces/default/pods/{name}/log?{query}")).decode()

    async def connect(self, address: Address) -> UpgradedConnection:
        """Open a connection to a node or a pod. Raises DialError."""
        embedding = self.cluster.plane.embedding
        way = embedding.kubelets if address == KUBELET else embedding.nearby
        assert way is not None
        found = way(address)
        assert found is not None
        return await found(None, "")

    async def request(self, target: str, fields: list[tuple[str, str]] = [], method: str = "GET") -> Http1Answer:  # noqa: B006
        """Send a request to the kubelet and return its response."""
        connection = await self.connect(KUBELET)
        return await send(connection, method, target, [("Host", "node"), *fields])

    async def spdy(self, target: str, protocol: str = "v4.channel.k8s.io") -> Session:
        """Open an SPDY session with the kubelet."""
        connection = await self.connect(KUBELET)
        fields = [
            ("Host", "node"),
            ("Connection", "Upgrade"),
            ("Upgrade", PROTOCOL),
            ("X-Stream-Protocol-Version", protocol),
            ("Content-Length", "0"),
        ]
        answer = await send(connection, "POST", target, fields)
        assert answer.status == 101, await answer.read(10_000)
        assert answer.header("x-stream-protocol-version") == protocol
        return Session(connection, first=answer.leftover)

    async def execute(
        self, name: str, *command: str, stdin: bytes | None = None, tty: bool = False, what: str = "exec"
    ) -> tuple[str, str, dict[str, Any]]:
        """Run a command over SPDY. Return what it prints to both streams, and the content of the error stream."""
        from urllib.parse import urlencode

        wanted = [("output", "1"), ("tty", "1") if tty else ("error", "1")]
        if stdin is not None:
            wanted.append(("input", "1"))
        query = urlencode([*wanted, *(("command", each) for each in command)])
        session = await self.spdy(f"/{what}/default/{name}/c?{query}")
        running = asyncio.create_task(session.run())
        try:
            errors = await session.open({"streamtype": "error"}, 5)
            entry = await session.open({"streamtype": "stdin"}, 5) if stdin is not None else None
            out = await session.open({"streamtype": "stdout"}, 5)
            err = out if tty else await session.open({"streamtype": "stderr"}, 5)
            if tty:
                await session.open({"streamtype": "resize"}, 5)
            if entry is not None and stdin is not None:
                await entry.write(stdin)
                await entry.end()
            read = [asyncio.create_task(each.read_all(1 << 20)) for each in ((out,) if tty else (out, err))]
            async with asyncio.timeout(10):
                said = json.loads(await errors.read_all(1 << 20))
                texts = [(await each).decode() for each in read]
            return texts[0], texts[-1] if not tty else "", said
        finally:
            session.close()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def read_all(stream: Stream) -> bytes:
    """Read a stream to its end."""
    return await stream.read_all(1 << 20)
