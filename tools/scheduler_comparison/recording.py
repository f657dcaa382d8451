"""Records what the real kube-scheduler says about each named case, as vectors for the tests.

    python -m tools.scheduler_comparison.recording --server COMMAND --scheduler KUBE_SCHEDULER DIR

COMMAND starts a kube-apiserver and prints one JSON line with url, ca and token. DIR gets a dump for each case, and expected.json
with the scheduler's words.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tools.differential.server import Client, Server
from tools.scheduler_comparison.command import Reference, running_scheduler
from tools.scheduler_comparison.named_cases import CASES, Plain

PATHS: Final = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/default/pods",
    "PersistentVolumeClaim": "/api/v1/namespaces/default/persistentvolumeclaims",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
}
"""Paths of the collections, by kind."""
EXPECTED: Final = "expected.json"
"""File with the scheduler's words by case."""
_EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_PATIENCE: Final = 15.0
_SETTLING: Final = 0.3
_SYSTEM: Final = "system-"


class Recorder:
    """Creates the objects of a case, and reads what becomes of the pod."""

    def __init__(self, client: Client) -> None:
        self._reference = Reference(client)
        self._client = client

    def prepare(self) -> None:
        """Create the ServiceAccount that pods need."""
        path = "/api/v1/namespaces/default/serviceaccounts"
        self._reference.ask("POST", path, {"metadata": {"name": "default"}})

    def create(self, obj: Plain) -> Plain:
        """Create an object with its status, and return it without the status."""
        path = f"{PATHS[obj['kind']]}"
        made: Plain = self._reference.ask("POST", path, {key: value for key, value in obj.items() if key != "status"})
        if obj["kind"] == "Node":  # admission has added a taint for nodes that are not ready
            self._reference.ask("PUT", f"{path}/{obj['metadata']['name']}", {**made, "spec": obj["spec"]})
        if "status" in obj:
            name = obj["metadata"]["name"]
            self._reference.ask("PATCH", f"{path}/{name}/status", {"status": obj["status"]}, **_MERGE)
        if obj["kind"] == "Pod" and "nodeName" in obj["spec"]:
            status = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
            self._reference.ask("PATCH", f"{path}/{obj['metadata']['name']}/status", status, **_MERGE)
        if obj["kind"] == "PersistentVolume":
            self._bind(obj)
        return made

    def _bind(self, volume: Plain) -> None:
        """Give the volume the UID of the claim that it is bound to."""
        claim = volume["spec"]["claimRef"]["name"]
        uid = self._reference.ask("GET", f"{PATHS['PersistentVolumeClaim']}/{claim}")["metadata"]["uid"]
        change = {"spec": {"claimRef": {"uid": uid}}}
        self._reference.ask("PATCH", f"{PATHS['PersistentVolume']}/{volume['metadata']['name']}", change, **_MERGE)

    def record(self, name: str) -> tuple[Plain, Plain]:
        """Return the objects of a case as the server has them, and the scheduler's words about the pod."""
        objects, pod = CASES[name]
        for each in objects:
            self.create(each)
        time.sleep(_SETTLING)
        before = list(self._objects())
        made = self.create(pod)
        made["metadata"].pop("managedFields", None)
        condition = self._condition()
        time.sleep(_SETTLING)
        found = self._reference.ask("GET", f"{PATHS['Pod']}/new")
        notes = [each["note"] for each in self._reference.items(_EVENTS) if each["reason"] == "FailedScheduling"]
        objects_then = [*before, {**made, "apiVersion": "v1", "kind": "Pod"}]
        return {"apiVersion": "v1", "kind": "List", "items": objects_then}, {
            "reason": condition["reason"],
            "message": condition["message"],
            "event": notes[-1] if notes else "",
            "nominated": found["status"].get("nominatedNodeName", ""),
        }

    def _condition(self) -> Plain:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            pod = self._reference.ask("GET", f"{PATHS['Pod']}/new")
            for each in pod["status"].get("conditions", ()):
                if each["type"] == "PodScheduled":
                    found: Plain = each
                    return found
            time.sleep(0.02)
        return {"reason": "", "message": ""}

    def _objects(self) -> Iterator[Plain]:
        for kind, path in PATHS.items():
            found = self._reference.ask("GET", path)
            for each in found["items"]:
                if not each["metadata"]["name"].startswith(_SYSTEM):
                    each["metadata"].pop("managedFields", None)
                    yield {"apiVersion": found["apiVersion"], "kind": kind, **each}

    def clear(self) -> None:
        """Delete the objects of a case."""
        for kind, path in PATHS.items():
            for each in self._reference.items(path):
                name = each["metadata"]["name"]
                if name.startswith(_SYSTEM):
                    continue
                if each["metadata"].get("finalizers") and kind != "Pod":
                    change = {"metadata": {"finalizers": None}}
                    self._client.ask("PATCH", f"{path}/{name}", change, _MERGE)
                self._client.ask("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
        self._client.ask("DELETE", _EVENTS)
        time.sleep(_SETTLING)


def main() -> int:
    """Record all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, help="starts a kube-apiserver, prints a JSON line")
    parser.add_argument("--scheduler", required=True, type=Path, help="the real kube-scheduler")
    parser.add_argument("--only", help="the name of one case")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / EXPECTED
    expected: Plain = json.loads(file.read_text()) if file.exists() else {}
    names: Any = CASES if options.only is None else [options.only]
    with Server(options.server) as client, running_scheduler(client, options.scheduler):
        recorder = Recorder(client)
        recorder.prepare()
        for name in names:
            objects, found = recorder.record(name)
            expected[name] = found
            _write(options.folder / f"{name}.json", objects)
            _write(file, expected)
            print(f"{name}: {found['reason']}: {found['message']}", flush=True)
            recorder.clear()
    return 0


def _write(path: Path, found: Plain) -> None:
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
