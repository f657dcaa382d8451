"""Network namespaces: each process on a machine of its own, as far as packets go, all of them on one bridge.

Packets are lost without a trace: a machine is unplugged, or sends what is for an address to a hardware address that
nobody has. So the first packets of connections are lost too, and whoever waits is told nothing. It takes root, Linux
and `ip` of iproute2; neither filters nor queues of the kernel, which may not be there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final

_NOBODY: Final = "02:00:00:00:00:01"
"""A hardware address that is nobody's."""
_OURS: Final = "02:00:00:00:00:02"
_DEVICE: Final = "eth0"
_MOST: Final = 250
"""Bridges on one machine."""


def impossible() -> str:
    """Why there can be no namespaces here; empty if there can."""
    if sys.platform != "linux":
        return "network namespaces are of Linux"
    if shutil.which("ip") is None:
        return "namespaces are made with ip, of iproute2"
    name = f"chaos-try-{os.getpid()}"
    try:
        _ip("netns", "add", name)
        _ip("netns", "del", name)
        _ip("link", "add", f"chaos-{os.getpid()}", "type", "bridge")
        _ip("link", "del", f"chaos-{os.getpid()}")
    except subprocess.CalledProcessError as error:
        return f"no namespaces can be made: {error.stderr.decode().strip()}"
    return ""


class Machine:
    """One namespace with one wire to the bridge."""

    def __init__(self, wires: Wires, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self._wires = wires
        self._namespace = f"{wires.name}-{name}"
        self._port = f"{wires.name}{name}"
        self.under = ("ip", "netns", "exec", self._namespace)
        """The command that runs another one in it."""

    def make(self) -> None:
        """Raises CalledProcessError, as all that follows does."""
        _ip("netns", "add", self._namespace)
        _ip("link", "add", self._port, "type", "veth", "peer", "name", _DEVICE, "netns", self._namespace)
        _ip("link", "set", self._port, "master", self._wires.name, "up")
        self._inside("addr", "add", f"{self.address}/24", "dev", _DEVICE)
        self._inside("link", "set", _DEVICE, "up")
        self._inside("link", "set", "lo", "up")

    def _inside(self, *arguments: str) -> None:
        _ip("-n", self._namespace, *arguments)

    def remove(self) -> None:
        """Its connections may still be ending; its wire does not wait for them."""
        _ip("link", "del", self._port)
        _ip("netns", "del", self._namespace)

    def unplug(self) -> None:
        """No packet comes to it or from it."""
        _ip("link", "set", self._port, "down")

    def plug(self) -> None:
        _ip("link", "set", self._port, "up")

    def lose(self, address: str) -> None:
        """Drop packets to this address, and deliver packets from it."""
        self._inside("neigh", "replace", address, "lladdr", _NOBODY, "nud", "permanent", "dev", _DEVICE)

    def find(self, address: str) -> None:
        self._inside("neigh", "replace", address, "lladdr", _NOBODY, "nud", "stale", "dev", _DEVICE)
        self._inside("neigh", "del", address, "dev", _DEVICE)

    def deafen(self) -> None:
        """Drop packets to this machine, and deliver packets from it."""
        _ip("neigh", "replace", self.address, "lladdr", _NOBODY, "nud", "permanent", "dev", self._wires.name)

    def undeafen(self) -> None:
        _ip("neigh", "replace", self.address, "lladdr", _NOBODY, "nud", "stale", "dev", self._wires.name)
        _ip("neigh", "del", self.address, "dev", self._wires.name)


class Wires:
    """The bridge, which has the addresses of proxies, and the machines on it."""

    def __init__(self) -> None:
        self.name = self._network = ""
        self._addresses = 0
        self.machines: list[Machine] = []

    def open(self) -> None:
        """Makes the bridge, under a number that no other has. Raises CalledProcessError."""
        for number in range(1, _MOST + 1):
            self.name, self._network = f"chaos{number}", f"10.213.{number}"
            try:  # with an address of its own: else it has that of one of its ports, which come and go
                _ip("link", "add", self.name, "address", _OURS, "type", "bridge")
                break
            except subprocess.CalledProcessError:
                if number == _MOST:
                    raise
        _ip("link", "set", self.name, "up")
        self.own_address()  # that of what comes from proxies; each proxy listens on one of its own

    def _next(self) -> str:
        self._addresses += 1
        return f"{self._network}.{self._addresses}"

    def own_address(self) -> str:
        """A further address of this machine."""
        found = self._next()
        _ip("addr", "add", f"{found}/24", "dev", self.name)
        return found

    def machine(self, name: str) -> Machine:
        """A new one."""
        found = Machine(self, name, self._next())
        found.make()
        self.machines.append(found)
        return found

    def close(self) -> None:
        """Removes everything; processes in it have ended."""
        for each in self.machines:
            each.remove()
        _ip("link", "del", self.name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
