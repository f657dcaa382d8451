"""The command: starts the real programs, goes through the cases, tells of differences."""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tools.differential.server import Client, Server
from tools.scheduler_comparison.cases import NAMESPACES, PRIORITIES, Case, Plain, case_of
from tools.scheduler_comparison.ours import Outcome, decide

_SETTLING: Final = 0.08
"""Seconds after which the real scheduler has been told of what was made."""
_PATIENCE: Final = 15.0
_START: Final = 3.0
"""Seconds in which the real scheduler starts."""
_DECIDED_FROM: Final = (
    "/api/v1/nodes",
    "/api/v1/pods",
    "/api/v1/namespaces",
    "/api/v1/services",
    "/apis/policy/v1/poddisruptionbudgets",
)


class Reference:
    """The cluster in which the real scheduler runs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = self._client.ask(method, path, body, headers)
        if answer.code >= 300 and not (answer.code == 409 and method == "POST"):
            raise RuntimeError(f"{method} {path}: {answer.code} {answer.body}")
        return answer.body

    def prepare(self) -> None:
        for name, labels in NAMESPACES.items():
            self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
            self.ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        for name, value in PRIORITIES.items():
            made = {"metadata": {"name": name}, "value": value}
            self.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", made)

    def make(self, case: Case) -> None:
        for node in case.nodes:
            made = self.ask("POST", "/api/v1/nodes", {"metadata": node["metadata"]})
            made["spec"] = node["spec"]
            made = self.ask("PUT", f"/api/v1/nodes/{node['metadata']['name']}", made)
            made["status"] = node["status"]
            self.ask("PUT", f"/api/v1/nodes/{node['metadata']['name']}/status", made)
        for service in case.services:
            self.ask("POST", f"/api/v1/namespaces/{service['metadata']['namespace']}/services", service)
        for budget in case.budgets:
            path = f"/apis/policy/v1/namespaces/{budget['metadata']['namespace']}/poddisruptionbudgets"
            made = self.ask("POST", path, budget)
            made["status"] = budget["status"]
            self.ask("PUT", f"{path}/{budget['metadata']['name']}/status", made)
        for number, pod in enumerate(case.pods):
            self._make_pod(pod)
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
            started = {"status": {"startTime": f"2026-01-01T00:00:{(number * 37) % 60:02}Z"}}
            self.ask("PATCH", path, started, **{"Content-Type": "application/merge-patch+json"})

    def _make_pod(self, pod: Plain) -> None:
        self.ask("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)

    def items(self, path: str) -> list[Plain]:
        found: list[Plain] = self.ask("GET", path)["items"]
        return found

    def outcome(self, case: Case) -> Outcome:
        """Makes the pod that has no node, and waits for what becomes of it."""
        namespace = case.pod["metadata"]["namespace"]
        self._make_pod(case.pod)
        path = f"/api/v1/namespaces/{namespace}/pods/new"
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            pod = self.ask("GET", path)
            if pod["spec"].get("nodeName"):
                return Outcome(nodes=frozenset({pod["spec"]["nodeName"]}))
            for each in pod.get("status", {}).get("conditions", ()):
                if each["type"] == "PodScheduled" and each.get("reason") != "SchedulingGated":
                    return self._refused(each["message"], pod["status"].get("nominatedNodeName", ""))
            time.sleep(0.01)
        raise RuntimeError(f"case {case.number}: nothing became of the pod")

    def _refused(self, message: str, nominated: str) -> Outcome:
        if not nominated:
            return Outcome(message=message)
        time.sleep(_SETTLING)
        gone = {each["metadata"]["name"] for each in self.items("/api/v1/pods") if _is_victim(each)}
        return Outcome(message=message, nominated=nominated, victims=frozenset(gone))

    def clear(self) -> None:
        for pod in self.items("/api/v1/pods"):
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            self._client.ask("DELETE", f"{path}?gracePeriodSeconds=0")
        for name in NAMESPACES:
            for service in self.items(f"/api/v1/namespaces/{name}/services"):
                self.ask("DELETE", f"/api/v1/namespaces/{name}/services/{service['metadata']['name']}")
            self.ask("DELETE", f"/apis/policy/v1/namespaces/{name}/poddisruptionbudgets")
        self.ask("DELETE", "/api/v1/nodes")
        time.sleep(_SETTLING)


def _is_victim(pod: Plain) -> bool:
    return any(each["type"] == "DisruptionTarget" for each in pod.get("status", {}).get("conditions", ()))


def compare(reference: Reference, case: Case) -> str:
    """Return the difference of a case, "" for none."""
    reference.make(case)
    time.sleep(_SETTLING)
    nodes, pods, namespaces, services, budgets = (reference.items(path) for path in _DECIDED_FROM)
    namespace = case.pod["metadata"]["namespace"]
    pod = reference.ask("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", case.pod)
    ours = asyncio.run(decide(nodes, pods, namespaces, services, budgets, pod))
    theirs = reference.outcome(case)
    if theirs.nodes:
        return "" if theirs.nodes <= ours.nodes else f"theirs {theirs}\nours   {ours}"
    return "" if theirs == ours else f"theirs {theirs}\nours   {ours}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, help="starts a kube-apiserver, prints a JSON line")
    parser.add_argument("--scheduler", required=True, type=Path, help="the real kube-scheduler")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one case")
    options = parser.parse_args()
    with Server(options.server) as client, running_scheduler(client, options.scheduler):
        reference = Reference(client)
        reference.prepare()
        return _go_through(reference, options)


@contextmanager
def running_scheduler(client: Client, program: Path, *, share: int = 0) -> Iterator[None]:
    """Run the real kube-scheduler on the server of a client until the end of the block.

    It compares `share` percent of the nodes, 0 for its default.
    """
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig, configuration = Path(folder) / "kubeconfig", Path(folder) / "configuration"
        kubeconfig.write_text(json.dumps(_kubeconfig(client.found)))
        configuration.write_text(json.dumps(_configuration(kubeconfig, share)))
        command = [
            str(program),
            f"--config={configuration}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--secure-port=0",
        ]
        with (Path(folder) / "log").open("w") as log:
            scheduler = subprocess.Popen(command, stderr=log)
            try:
                time.sleep(_START)
                yield
            finally:
                scheduler.terminate()
                scheduler.wait()


def _configuration(kubeconfig: Path, share: int) -> Plain:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": share,
    }


def _go_through(reference: Reference, given: argparse.Namespace) -> int:
    different = 0
    numbers = range(given.cases) if given.only is None else [given.only]
    for number in numbers:
        case = case_of(number, given.seed)
        try:
            found = compare(reference, case)
        except RuntimeError as error:
            found = str(error)
        if found:
            different += 1
            print(f"case {number}:\n{found}", flush=True)
            if given.only is not None:
                print(json.dumps(vars(case), indent=1))
        reference.clear()
    print(f"{len(numbers)} cases, {different} different")
    return 1 if different else 0


def _kubeconfig(found: dict[str, str]) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": found["url"], "certificate-authority": found["ca"]}}],
        "users": [{"name": "u", "user": {"token": found["token"]}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
