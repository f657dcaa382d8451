"""Runs the webhooks of pods as programs on this machine, in place of containers."""

from __future__ import annotations

import base64
import socket
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from steersman.testing import BlockingClient

COMMANDS: Final = ("webhook", "crd-conversion-webhook")
"""What the program knows, as the first argument of a container."""


class WebhookPods:
    """The programs that run for pods, until `stop`. They listen on the machine's own address, a port for each pod."""

    def __init__(self, client: BlockingClient, program: Path) -> None:
        self._client = client
        self._program = program
        self._folder = tempfile.TemporaryDirectory(prefix="steersman-webhooks-")
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._address = own_address()

    def run(self, pod: dict[str, Any]) -> str | None:
        """Starts the webhook of a pod unless it runs; its address, None for a pod that has no webhook."""
        container = pod["spec"]["containers"][0]
        arguments: list[str] = container.get("args", [])
        if not arguments or arguments[0] not in COMMANDS:
            return None
        uid = pod["metadata"]["uid"]
        if uid not in self._running:
            for mount in container.get("volumeMounts", []):
                folder = self._mounted(pod, mount["name"])
                arguments = [each.replace(mount["mountPath"], str(folder)) for each in arguments]
            self._running[uid] = subprocess.Popen([self._program, *arguments], stderr=subprocess.DEVNULL)
        return self._address

    def keep(self, uids: Collection[str]) -> None:
        """Ends what runs for other pods than these."""
        for uid in self._running.keys() - set(uids):
            process = self._running.pop(uid)
            process.kill()
            process.wait()

    def stop(self) -> None:
        """Ends everything."""
        self.keep(())
        self._folder.cleanup()

    def _mounted(self, pod: dict[str, Any], name: str) -> Path:
        """A folder with what a volume of a pod holds: the values of a Secret, nothing of another."""
        folder = Path(self._folder.name) / pod["metadata"]["uid"] / name
        folder.mkdir(parents=True)
        (volume,) = (each for each in pod["spec"]["volumes"] if each["name"] == name)
        if "secret" in volume:
            namespace, secret = pod["metadata"]["namespace"], volume["secret"]["secretName"]
            _, found = self._client.json("GET", f"/api/v1/namespaces/{namespace}/secrets/{secret}")
            for key, value in found["data"].items():
                (folder / key).write_bytes(base64.b64decode(value))
        return folder


def own_address() -> str:
    """An address of this machine that is no loopback one, as endpoints may not have these. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.9", 9))
        return str(probe.getsockname()[0])
