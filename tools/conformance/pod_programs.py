"""Runs what some pods have in their containers as programs on this machine: webhooks, and the sample-apiserver."""

from __future__ import annotations

import base64
import subprocess
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from steersman.testing import BlockingClient
from tools.aggregated_server.command import free_port, kubeconfig, own_address

WEBHOOKS: Final = ("webhook", "crd-conversion-webhook")
"""Programs of webhooks, by the first argument of a container."""
AGGREGATED: Final = "sample-apiserver"
"""The name of the container of the sample-apiserver; that beside it is its etcd."""


class Served(Protocol):
    """The server that programs are clients of."""

    @property
    def url(self) -> str: ...

    @property
    def ca(self) -> Path: ...


@dataclass(frozen=True)
class Programs:
    """Programs in place of images."""

    webhooks: Path
    sample_apiserver: Path
    etcd: Path


class PodPrograms:
    """The programs that run for pods, until `stop`.

    They listen on the machine's own address, a port for each pod; the sample-apiserver wants 443, so only who may
    listen there can run it.
    """

    def __init__(self, server: Served, client: BlockingClient, programs: Programs) -> None:
        self._server = server
        self._client = client
        self._programs = programs
        self._folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(prefix="steersman-pods-")
        self._running: dict[str, list[subprocess.Popen[bytes]]] = {}
        self._address = own_address()

    def run(self, pod: dict[str, Any]) -> str | None:
        """Starts the programs of a pod unless they run; its address, None for a pod that has none."""
        first = pod["spec"]["containers"][0]
        arguments: list[str] = first.get("args", [])
        is_webhook = bool(arguments) and arguments[0] in WEBHOOKS
        if not is_webhook and first["name"] != AGGREGATED:
            return None
        uid = pod["metadata"]["uid"]
        if uid not in self._running:
            arguments = self._mounted(pod, first)
            commands = [[str(self._programs.webhooks), *arguments]] if is_webhook else self._aggregated(pod, arguments)
            self._running[uid] = [_started(each) for each in commands]
        return self._address

    def keep(self, uids: Collection[str]) -> None:
        """Ends what runs for other pods than these, and starts again what has ended by itself, as kubelets do."""
        for uid in self._running.keys() - set(uids):
            for process in self._running.pop(uid):
                process.kill()
                process.wait()
        for processes in self._running.values():
            processes[:] = [each if each.poll() is None else _started(each.args) for each in processes]

    def stop(self) -> None:
        """Ends everything."""
        self.keep(())
        self._folder.cleanup()

    def _folder_of(self, pod: dict[str, Any], name: str) -> Path:
        folder: Path = Path(self._folder.name) / pod["metadata"]["uid"] / name
        folder.mkdir(parents=True)
        return folder

    def _mounted(self, pod: dict[str, Any], container: dict[str, Any]) -> list[str]:
        """The arguments of a container, with paths below its mounts led to where their files are."""
        arguments: list[str] = container["args"]
        for mount in container.get("volumeMounts", []):
            folder = str(self._volume(pod, mount["name"]))
            arguments = [each.replace(mount["mountPath"], folder) for each in arguments]
        return arguments

    def _volume(self, pod: dict[str, Any], name: str) -> Path:
        """A folder with what a volume of a pod holds: the values of a Secret, nothing of another."""
        folder = self._folder_of(pod, name)
        (volume,) = (each for each in pod["spec"]["volumes"] if each["name"] == name)
        if "secret" in volume:
            namespace, secret = pod["metadata"]["namespace"], volume["secret"]["secretName"]
            _, found = self._client.json("GET", f"/api/v1/namespaces/{namespace}/secrets/{secret}")
            for key, value in found["data"].items():
                (folder / key).write_bytes(base64.b64decode(value))
        return folder

    def _aggregated(self, pod: dict[str, Any], arguments: list[str]) -> list[list[str]]:
        """An etcd on a port of its own, and the sample-apiserver, which is its pod's service account."""
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        given = [each for each in arguments if not each.startswith("--etcd-servers=")]
        account = self._account(pod)
        return [
            [
                str(self._programs.etcd),
                f"--data-dir={self._folder_of(pod, 'etcd')}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
            ],
            [
                str(self._programs.sample_apiserver),
                *given,
                f"--etcd-servers={client}",
                f"--bind-address={self._address}",
                *(
                    f"--{each}={account}"
                    for each in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
                ),
            ],
        ]

    def _account(self, pod: dict[str, Any]) -> Path:
        """In the place of what a pod finds of its service account among its files."""
        namespace, account = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        _, found = self._client.json("POST", path, {"spec": {}})
        server = {"url": self._server.url, "ca": str(self._server.ca), "token": found["status"]["token"]}
        return kubeconfig(server, self._folder_of(pod, "account") / "kubeconfig")


def _started(command: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
