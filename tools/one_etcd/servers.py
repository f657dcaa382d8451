"""Servers on one etcd that have the same keys, and one address for all of them."""

from __future__ import annotations

import argparse
import ssl
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol, Self

from steersman.server.certificates import CertificateFiles, admin_kubeconfig, ensure_certificates
from steersman.testing import BlockingClient, ServerProcess
from tools.one_etcd.etcd import Etcd
from tools.one_etcd.kube_apiserver import KubeApiServer
from tools.round_robin import RoundRobin
from tools.stored_values.servers import free_port

STEERSMAN: Final = "steersman"
KUBERNETES: Final = "kubernetes"
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
GOAWAY: Final = "--goaway-chance=0.02"
"""Has clients of HTTP/2, which keep one connection, take a new one after fifty requests or so, to the next server."""


STORED: Final = "--storage-media-type=application/vnd.kubernetes.protobuf"
"""Both store alike: otherwise a write that changes nothing replaces the form of the other one, which is a change."""


class OneServer(Protocol):
    """A server that can be ended and started again."""

    errors: Path
    """File with its stderr."""

    @property
    def address(self) -> tuple[str, int]: ...

    def start(self) -> float: ...

    def stop(self) -> int: ...

    def kill(self) -> None: ...


class ServersOnEtcd:
    """Servers on one etcd, from `with` to the end of it, in a folder. They have the same keys, authority and flags.

    `url` is for the servers in turn, by connections. A server that has ended is passed over until it is there again.
    """

    def __init__(self, folder: Path, names: Sequence[str], flags: Sequence[str] = (), *, verb: str = "serve") -> None:
        """`names` says of each server whose it is; `verb` is the command of those of this project."""
        self._folder = folder
        self._names = names
        self._flags = flags
        self._verb = verb
        self._running = ExitStack()
        self.files = CertificateFiles(folder / "data")
        self.key = folder / "sa.key"
        """Key of service account tokens."""
        self.servers: list[OneServer] = []
        self.url = self.etcd_url = ""
        self.address = "127.0.0.1", 0
        self.kubeconfig = folder / "kubeconfig"
        """The administrator's, for `url`."""

    def __enter__(self) -> Self:
        """Starts all, one after another. Raises LookupError without a program, ServerNotReady, OSError."""
        with ExitStack() as stack:
            self._start(stack)
            self._running = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _start(self, stack: ExitStack) -> None:
        ensure_certificates(self.files.folder)
        subprocess.run(["openssl", "genrsa", "-out", str(self.key), "2048"], check=True, capture_output=True)
        etcd = stack.enter_context(Etcd(self._folder / "etcd"))
        self.etcd_url = etcd.url
        flags = [
            *([STORED] if KUBERNETES in self._names else ()),
            f"--etcd-servers={etcd.url}",
            f"--client-ca-file={self.files.ca}",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-signing-key-file={self.key}",
            f"--service-account-key-file={self.key}",
            *self._flags,
        ]
        for name in self._names:
            # a port that stays, so that the address of all finds it when it is started again
            server = self._one(name, [*flags, f"--secure-port={free_port()}"])
            stack.callback(server.kill)
            server.start()
            self.servers.append(server)
        balancer = RoundRobin([each.address for each in self.servers])
        stack.callback(balancer.close)
        self.address = "127.0.0.1", balancer.port
        self.url = f"https://127.0.0.1:{balancer.port}"
        self.kubeconfig.write_bytes(admin_kubeconfig(self.url, self.files))

    def _one(self, name: str, flags: Sequence[str]) -> OneServer:
        if name == KUBERNETES:
            return KubeApiServer(self.files.folder, *flags)
        return ServerProcess(self.files.folder, *flags, verb=self._verb)

    def client(self) -> BlockingClient:
        """The administrator's, of all servers in turn."""
        return BlockingClient(self.address, self.context())

    def context(self, protocols: Sequence[str] = ()) -> ssl.SSLContext:
        """TLS with the administrator's certificate."""
        context = ssl.create_default_context(cafile=str(self.files.ca))
        context.load_cert_chain(self.files.admin, self.files.admin_key)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context


def names(text: str) -> tuple[str, ...]:
    """Parse the value of --on-etcd: the kinds of servers to start. Raises ArgumentTypeError."""
    found = tuple(text.split(","))
    if unknown := set(found) - {STEERSMAN, KUBERNETES}:
        raise argparse.ArgumentTypeError(f"no such server: {', '.join(sorted(unknown))}")
    return found
