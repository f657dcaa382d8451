"""The pictures of the guide to the page, taken of a small cluster in Chromium.

python -m tests.e2e.inspector_pictures docs/images
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steersman.testing import ServerProcess
from tests.e2e.inspector_page import FrontProcess

VIEWS = ("cluster", "objects", "why", "requests", "time")
NODES = 60
_DEPLOYMENTS = {"shop": (6, "500m"), "cart": (40, "2"), "search": (25, "4"), "worker": (60, "1"), "cache": (12, "8")}
_FAILING = {"simulation.steersman.dev/exit-code": "1"}


def deployment(name: str, replicas: int, cpu: str, image: str = "", **annotations: str) -> Mapping[str, object]:
    """Return a Deployment whose pods request `cpu`."""
    container = {
        "name": "main",
        "image": image or f"registry.example/{name}:1",
        "resources": {"requests": {"cpu": cpu}},
    }
    template = {"metadata": {"labels": {"app": name}, "annotations": annotations}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


class Writer:
    """Writes objects of the namespace `default` with server-side apply."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server

    def apply(self, path: str, body: Mapping[str, object], manager: str = "argocd") -> Any:
        """Apply an object and return it; an error fails the test."""
        full = f"{path}?fieldManager={manager}&force=true"
        with self._server.client() as client:
            status, answer = client.request("PATCH", full, body, {"Content-Type": "application/apply-patch+yaml"})
        assert status < 300, answer
        return json.loads(answer)


def take(folder: Path) -> None:
    """Write `inspect-VIEW.png` for each of VIEWS to a folder."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        with ServerProcess(data, f"--nodes={NODES}", verb="up") as server:
            writer = Writer(server)
            apps = "/apis/apps/v1/namespaces/default/deployments"
            for each, (replicas, cpu) in _DEPLOYMENTS.items():
                first = writer.apply(f"{apps}/{each}", deployment(each, replicas, cpu))
                if each == "shop":
                    from_revision = first["metadata"]["resourceVersion"]
            changed = deployment("shop", 9, "500m", "registry.example/shop:2")
            to_revision = writer.apply(f"{apps}/shop", changed)["metadata"]["resourceVersion"]
            writer.apply(f"{apps}/mailer", deployment("mailer", 2, "100m", **_FAILING))
            resources = {"requests": {"cpu": "48", "memory": "4Gi"}}
            spec = {"containers": [{"name": "main", "image": "registry.example/trainer:1", "resources": resources}]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "trainer"}, "spec": spec}
            writer.apply("/api/v1/namespaces/default/pods/trainer", pod)
            with FrontProcess(server.kubeconfig, Path(name) / "stderr") as front:
                front.play("pictures", folder, nodes=NODES, revisions=[from_revision, to_revision])


if __name__ == "__main__":
    take(Path(sys.argv[1]))
