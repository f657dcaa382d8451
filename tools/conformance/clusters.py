"""The clusters that the tests run on: one server or the other, with these controllers or those, and nodes."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steersman.server.certificates import ensure_certificates
from steersman.testing import BlockingClient, ServerProcess
from tools.conformance.node_agent import NodeAgent
from tools.conformance.pod_programs import PodPrograms, Programs
from tools.conformance.program_agent import ProgramAgent
from tools.one_etcd.servers import GOAWAY, ServersOnEtcd

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PROGRAMS: Final = Path(os.environ.get("STEERSMAN_REFERENCE") or CACHE / "steersman-reference")
NODES: Final = ["n1", "n2", "n3"]
MISSING_IMAGES: Final = ["invalid.registry.k8s.io/*", "*webserver:404", "*non-existent*", "foo*"]
_ROOT: Final = Path(__file__).resolve().parents[2]
_RANGE: Final = "--service-cluster-ip-range=10.0.0.0/20"


def find(name: str) -> str:
    """A program, from the folder of those built for comparisons or from PATH."""
    path = shutil.which(name, path=f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}")
    if path is None:
        sys.exit(f"no {name}: put one in PATH, or in the folder that $STEERSMAN_REFERENCE names")
    return path


@dataclass(frozen=True)
class Cluster:
    """Address and credentials of a cluster."""

    url: str
    ca: Path
    kubeconfig: Path
    token: str = ""

    def client(self) -> BlockingClient:
        """The administrator's."""
        parts = urllib.parse.urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        context = ssl.create_default_context(cafile=str(self.ca))
        return BlockingClient((parts.hostname, parts.port), context, token=self.token)


@dataclass(frozen=True)
class Parts:
    """Components of a cluster: "steersman" or "kubernetes" each; with simulated nodes it is `steersman up`."""

    server: str
    controllers: str
    simulated: bool
    on_etcd: Sequence[str] = ()
    """In place of `server`: those that stand on one etcd, behind one address."""

    @contextmanager
    def run(self, folder: Path, images: Programs) -> Iterator[Cluster]:
        """The cluster, in a folder of its own."""
        with ExitStack() as stack:
            key = folder / "sa.key"
            subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
            if self.on_etcd:
                cluster, key, client = self._on_etcd(folder, stack)
            elif self.server == "steersman":
                cluster, server = self._steersman(folder, key, stack)
                client = stack.enter_context(server.client())
            else:
                cluster, key = self._kubernetes(folder, stack)
                client = stack.enter_context(cluster.client())
            programs = PodPrograms(cluster, client, images)
            stack.callback(programs.stop)
            if not self.simulated:
                self._start_controllers(cluster, folder, key, stack)
            agent = ProgramAgent(client, programs) if self.simulated else NodeAgent(client, NODES, programs)
            agent.start()
            stack.callback(agent.stop)
            yield cluster

    def _flags(self, folder: Path) -> list[str]:
        """Return the flags of every server but the reference's own; `up` has nodes."""
        proxy = ensure_certificates(folder / "proxy", ["127.0.0.1"])
        flags = [
            "--allow-privileged",
            _RANGE,
            "--enable-aggregator-routing",
            f"--requestheader-client-ca-file={proxy.ca}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={proxy.admin}",
            f"--proxy-client-key-file={proxy.admin_key}",
        ]
        if self.simulated:
            nodes = folder / "nodes.yaml"
            nodes.write_text(
                json.dumps(
                    {"serveLocal": True, "missingImages": MISSING_IMAGES, "nodes": [{"name": "n", "count": len(NODES)}]}
                )
            )
            flags.append(f"--config={nodes}")
        return flags

    @property
    def _verb(self) -> str:
        return "up" if self.simulated else "serve"

    def _on_etcd(self, folder: Path, stack: ExitStack) -> tuple[Cluster, Path, BlockingClient]:
        """Servers on one etcd, the key of their tokens, and a client; clients go from one server to the other."""
        flags = [*self._flags(folder), GOAWAY, "--authorization-mode=Node,RBAC"]
        servers = stack.enter_context(ServersOnEtcd(folder / "servers", self.on_etcd, flags, verb=self._verb))
        client = stack.enter_context(servers.client())
        return Cluster(servers.url, servers.files.ca, servers.kubeconfig), servers.key, client

    def _steersman(self, folder: Path, key: Path, stack: ExitStack) -> tuple[Cluster, ServerProcess]:
        flags = [f"--service-account-signing-key-file={key}", *self._flags(folder)]
        server = ServerProcess(folder / "data", *flags, verb=self._verb)
        server.start()
        stack.callback(server.stop)
        return Cluster(server.url, server.ca, server.kubeconfig), server

    def _kubernetes(self, folder: Path, stack: ExitStack) -> tuple[Cluster, Path]:
        """kube-apiserver and etcd, with accounts, and the key of their tokens."""
        command = [
            sys.executable,
            str(_ROOT / "bench" / "reference" / "reference"),
            "up",
            f"--flag={_RANGE}",
            "--flag=--disable-admission-plugins=",
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            sys.exit("kube-apiserver did not start")
        document = json.loads(line)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "it",
                    "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                    "clusters": [
                        {"name": "it", "cluster": {"server": document["url"], "certificate-authority": document["ca"]}}
                    ],
                    "users": [{"name": "it", "user": {"token": document["token"]}}],
                }
            )
        )
        ca = Path(document["ca"])
        return Cluster(document["url"], ca, kubeconfig, document["token"]), ca.with_name("sa.key")

    def _start_controllers(self, cluster: Cluster, folder: Path, key: Path, stack: ExitStack) -> None:
        kubeconfig, given = (
            f"--kubeconfig={cluster.kubeconfig}",
            [f"--root-ca-file={cluster.ca}", f"--service-account-private-key-file={key}"],
        )
        if self.controllers == "steersman":
            ours = [sys.executable, "-m", "steersman.cli"]
            commands = [[*ours, "controllers", kubeconfig, *given], [*ours, "scheduler", kubeconfig]]
        else:
            judged = [
                f"--{each}={cluster.kubeconfig}" for each in ("authentication-kubeconfig", "authorization-kubeconfig")
            ]
            flags = [kubeconfig, *judged, "--secure-port=0"]
            commands = [[find("kube-controller-manager"), *flags, *given], [find("kube-scheduler"), *flags]]
        for number, command in enumerate(commands):
            log = stack.enter_context((folder / f"controllers-{number}.log").open("wb"))
            process = subprocess.Popen(command, stderr=log, stdout=log)
            stack.callback(process.wait)
            stack.callback(process.terminate)
