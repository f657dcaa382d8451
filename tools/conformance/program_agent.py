"""Runs the programs of pods (`PodPrograms`) for simulated nodes, which serve the pods' ports by them."""

from __future__ import annotations

import threading
from typing import Any, Final

from steersman.testing import BlockingClient
from tools.conformance.pod_programs import PodPrograms

PAUSE: Final = 0.2
_SERVE: Final = "simulation.steersman.dev/serve."
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}


class ProgramAgent:
    """Starts and ends programs as pods come and go, until `stop`."""

    def __init__(self, client: BlockingClient, programs: PodPrograms) -> None:
        self._client = client
        self._programs = programs
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="program agent")

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Returns once nothing is started any more."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(PAUSE):
            pods = self._client.json("GET", "/api/v1/pods")[1]["items"]
            self._programs.keep([pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]])
            for pod in pods:
                if "deletionTimestamp" not in pod["metadata"]:
                    self._tend(pod)

    def _tend(self, pod: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        if any(each.startswith(_SERVE) for each in metadata.get("annotations", {})):
            return
        address = self._programs.run(pod)
        if address is not None:
            ports = [each["containerPort"] for one in pod["spec"]["containers"] for each in one.get("ports", [])]
            annotations = {f"{_SERVE}{port}": f"{address}:{port}" for port in ports or [443]}
            target = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            self._client.request("PATCH", target, {"metadata": {"annotations": annotations}}, _MERGE)
