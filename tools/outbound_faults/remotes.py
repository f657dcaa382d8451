"""An aggregated server that dies in the middle of its answers and comes back elsewhere, again and again."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any, Final

from steersman.server.certificates import CertificateFiles
from steersman.testing import Client
from tools.outbound_faults.peer import Asked, Peer, Said, as_json

GROUP: Final = "deaths.example.com"
_ROOT: Final = f"/apis/{GROUP}/v1"
_SLICES: Final = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
_API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
_PATIENCE: Final = 60.0
_AT_ONCE: Final = 8
_LIST: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/v1",
    "resources": [{"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get"]}],
}


def answer(asked: Asked) -> Said | None:
    """Discovery, and things; "hang" and others of the faults are left to the peer."""
    path = asked.path.partition("?")[0]
    if path == _ROOT:
        return Said(200, as_json(_LIST))
    if asked.fault == "good":
        return Said(200, as_json({"kind": "Thing", "data": "x" * 2000}))
    return None


def own_address() -> str:
    """An address of this machine that endpoints may have: none of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # nothing is sent
        address: str = probe.getsockname()[0]
        return address


class Remotes:
    """The server in its lives; `die` ends one of them."""

    def __init__(self, client: Client, files: CertificateFiles) -> None:
        self._client = client
        self._files = files
        self._host = own_address()
        self._lives = 0
        self.told: Counter[str] = Counter()
        """Statuses of the requests that were sent while it died."""

    async def start(self) -> None:
        """Makes the objects that lead to it."""
        ports = [{"name": "https", "port": 443}]
        service = {"metadata": {"name": "deaths"}, "spec": {"ports": ports, "clusterIP": "None"}}
        assert (await self._client.post("/api/v1/namespaces/default/services", service)).status == 201
        found = await self._client.post(_SLICES, self._slice(1))
        assert found.status == 201, found.body
        spec = {
            "group": GROUP,
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "insecureSkipTLSVerify": True,
            "service": {"name": "deaths", "namespace": "default"},
        }
        found = await self._client.post(
            _API_SERVICES,
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"v1.{GROUP}"},
                "spec": spec,
            },
        )
        assert found.status == 201, found.body

    async def live(self, lives: int) -> None:
        """Comes to life so often, each time elsewhere, and dies while it is asked."""
        for _ in range(lives):
            self._lives += 1
            protocol = "h2" if self._lives % 2 else "http/1.1"
            peer = Peer(protocol, self._files.server, self._files.server_key, answer, self._host)
            await peer.start()
            moved = await self._client.request("PUT", f"{_SLICES}/deaths-1", self._slice(peer.port))
            assert moved.status == 200, moved.body
            await self._until_it_answers()
            before = peer.asked
            asking = [
                asyncio.create_task(self._ask(fault))
                for fault in ("hang", "trickle", "good", "half", "close")
                for _ in range(_AT_ONCE)
            ]
            async with asyncio.timeout(_PATIENCE):
                await peer.was_asked_more(before + len(asking) // 2)
            await peer.stop()
            async with asyncio.timeout(_PATIENCE):
                await asyncio.gather(*asking)

    async def _ask(self, fault: str) -> None:
        try:
            found = await self._client.get(f"{_ROOT}/namespaces/default/things/{fault}")
            self.told[f"{fault} {found.status}"] += 1
        except Exception as error:
            self.told[f"{fault} {type(error).__name__}"] += 1

    async def _until_it_answers(self) -> None:
        async with asyncio.timeout(_PATIENCE):
            while (await self._client.get(f"{_ROOT}/namespaces/default/things/good")).status != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    def _slice(self, port: int) -> dict[str, Any]:
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "addressType": "IPv4",
            "metadata": {"name": "deaths-1", "labels": {"kubernetes.io/service-name": "deaths"}},
            "endpoints": [{"addresses": [self._host]}],
            "ports": [{"name": "https", "port": port}],
        }
