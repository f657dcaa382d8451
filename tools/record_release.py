"""Record the data folder of a release, which tests of later versions open.

    python -m tools.record_release          # writes tests/released/VERSION.tar.xz

A simulated cluster is run on an empty folder, objects of built-in and custom kinds are made, and what the stopped cluster
has left is packed: its data folder, a snapshot by `steersman storage save`, and `objects.json`, every object as it was
served. To be run once for each released version, by that version; a recording is never written anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import steersman
from tools.try_wheel import Client, Failed, ready_fields

FOLDER = Path(__file__).resolve().parent.parent / "tests/released"
_STEERSMAN = Path(sys.executable).with_name("steersman")
_PATIENCE = 60.0
_VOLATILE = {"leases", "events"}
"""Resources whose objects change or vanish by themselves."""

_WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}
_POD_SPEC = {"containers": [{"name": "web", "image": "nginx:1.29", "resources": {"requests": {"cpu": "100m"}}}]}
_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
_CREATED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _WIDGETS),
    ("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}, "data": {"text": "ä\n", "empty": ""}}),
    ("/api/v1/namespaces/default/secrets", {"metadata": {"name": "a"}, "data": {"key": "c2VjcmV0"}}),
    ("/api/v1/namespaces/default/services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {"metadata": {"name": "a"}, "rules": _RULES}),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": _POD_SPEC},
            },
        },
    ),
    (
        "/apis/example.com/v1/namespaces/default/widgets",
        {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "a"},
            "spec": {"any": [1, 2.5, None, {"deep": True}]},
        },
    ),
)


def objects_of(client: Client) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path of every list of a server, with the list, but for what changes by itself."""
    groups = client.ask("GET", "/apis")["groups"]
    roots = ["/api/v1", *(f"/apis/{each['preferredVersion']['groupVersion']}" for each in groups)]
    for root in roots:
        if "metrics.k8s.io" in root:  # `up` has them, and not `serve`
            continue
        for resource in client.ask("GET", root)["resources"]:
            if "list" in resource["verbs"] and resource["name"] not in _VOLATILE:
                path = f"{root}/{resource['name']}"
                yield path, client.ask("GET", path)


def create(client: Client) -> None:
    """Create the objects, and wait until the Deployment's pods run."""
    for path, body in _CREATED:
        deadline = time.monotonic() + _PATIENCE
        while True:  # a custom resource is served soon after its definition was made
            try:
                client.ask("POST", path, body)
                break
            except Failed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
    deadline = time.monotonic() + _PATIENCE
    web = "/apis/apps/v1/namespaces/default/deployments/web"
    while client.ask("GET", web).get("status", {}).get("availableReplicas") != 2:
        if time.monotonic() > deadline:
            raise TimeoutError("the Deployment is not available")
        time.sleep(0.1)


def main() -> None:
    """Run the cluster and pack what it leaves. Ends the program if this version has been recorded already."""
    output = FOLDER / f"{steersman.__version__}.tar.xz"
    if output.exists():
        sys.exit(f"{output} is there already: a recording is of the version that was released")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data"
        command: list[str | Path] = [_STEERSMAN, "up", "--nodes=1", "--secure-port=0", f"--data-dir={data}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            create(Client(ready_fields(process)["url"], data))
        finally:
            process.terminate()
            process.communicate()
        with tempfile.TemporaryDirectory() as copy:
            subprocess.run(["cp", "-r", str(data), f"{copy}/data"], check=True)
            (folder / "objects.json").write_text(json.dumps(dict(served(Path(copy) / "data")), sort_keys=True))
        subprocess.run([_STEERSMAN, "storage", "save", f"--data-dir={data}", str(folder / "snapshot")], check=True)
        FOLDER.mkdir(exist_ok=True)
        with tarfile.open(output, "w:xz") as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name)
    print(output)


def served(data: Path) -> Iterator[tuple[str, Any]]:
    """Yield the objects that `steersman serve` shows of a data folder: by path of their list."""
    command: list[str | Path] = [
        _STEERSMAN,
        "serve",
        "--secure-port=0",
        "--bind-address=127.0.0.1",
        f"--data-dir={data}",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for path, found in objects_of(Client(ready_fields(process)["url"], data)):
            yield path, found["items"]
    finally:
        process.terminate()
        process.communicate()


if __name__ == "__main__":
    main()
