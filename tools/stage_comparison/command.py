"""`python -m tools.stage_comparison [SET ...]`: plays each set of stages on both sides, and tells what differs.

Needs kwok beside the programs of the reference ($STEERSMAN_REFERENCE, `bench/reference/reference build --cluster`) and
Go, in whose cache of modules kwok's published stages are.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from steersman.authentication.user import UserInfo
from steersman.client.api_resource import APIResource
from steersman.client.client import MERGE_PATCH, Client
from steersman.client.errors import ignoring, is_not_found
from steersman.cluster.cluster import Cluster
from steersman.cluster.configuration import Configuration
from steersman.cluster.definitions import install
from steersman.controlplane.options import Options
from steersman.machinery.errors.status import StatusError
from tools.stage_comparison.cases import SETS as _SETS
from tools.stage_comparison.cases import Plain, Set
from tools.stage_comparison.kinds import KINDS

SETS: Final = (*_SETS, KINDS)

PROGRAMS: Final = Path(os.environ.get("STEERSMAN_REFERENCE") or Path.home() / ".cache/steersman-reference")
KWOK: Final = "sigs.k8s.io/kwok@v0.8.0"
_QUIET: Final = 4.0
_PATIENCE: Final = 90.0
"""Seconds without a change after which all is at rest, and after which it is not waited for any more."""

_PODS: Final[APIResource[Plain]] = APIResource("", "v1", "pods", "Pod", dict)
_NODES: Final[APIResource[Plain]] = APIResource("", "v1", "nodes", "Node", dict, namespaced=False)
_JOBS: Final[APIResource[Plain]] = APIResource("batch", "v1", "jobs", "Job", dict)
_EVENTS: Final[APIResource[Plain]] = APIResource("", "v1", "events", "Event", dict)
_NAMESPACES: Final[APIResource[Plain]] = APIResource("", "v1", "namespaces", "Namespace", dict, namespaced=False)
_CONFIG_MAPS: Final[APIResource[Plain]] = APIResource("", "v1", "configmaps", "ConfigMap", dict)
_WIDGETS: Final[APIResource[Plain]] = APIResource("example.com", "v1", "widgets", "Widget", dict)
_BY_KIND: Final = {"Pod": _PODS, "Job": _JOBS, "ConfigMap": _CONFIG_MAPS, "Widget": _WIDGETS}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_POD_ADDRESS: Final = re.compile(r"10\.128\.\d+\.\d+")
_GENERATED: Final = re.compile(r"^(job)-[a-z0-9]{5}$")
_NODE_COUNT: Final = 2


def stage_files(found: Set, folder: Path) -> list[Path]:
    """The files of a set, in a folder of its own for those that are text."""
    own = folder / "own.yaml"
    own.write_text(found.text)
    modules = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True).stdout.strip()
    published = Path(modules) / KWOK / "kustomize/stage"
    files = [each for name in found.folders for each in sorted((published / name).glob("*.yaml"))]
    return [*([own] if found.text else []), *(each for each in files if each.name != "kustomization.yaml")]


async def play(found: Set, *, ours: bool) -> Plain:
    """Return the final objects, in the order of their names."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = stage_files(found, folder)
        config = folder / "cluster.json"
        nodes = [{"count": _NODE_COUNT if ours else 0, "labels": found.node_labels}]
        config.write_text(json.dumps({"nodes": nodes, "stages": [str(each) for each in files] if ours else []}))
        cluster = Cluster(
            Options(data_dir=folder / "data", storage="memory", secure_port=0), Configuration.load(config)
        )
        await cluster.start()
        stack.push_async_callback(cluster.stop)
        client = cluster.client(UserInfo("admin", groups=("system:masters",)), "comparison")
        await install(client, found.definitions)
        if not ours:
            await make_nodes(client, found)
            await stack.enter_async_context(_Kwok(folder, files))
        return await outcome(client, found)


async def make_nodes(client: Client, found: Set) -> None:
    """The nodes that there are on our side, for kwok to play."""
    template = json.dumps({"nodes": [{"count": _NODE_COUNT, "labels": found.node_labels}]})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(template)
        file.flush()
        nodes = Configuration.load(Path(file.name)).simulated_nodes()
    from steersman.machinery.codec.serializer import to_plain

    for each in nodes:
        node = to_plain(each.node())
        if any("node" in name for name in found.folders):
            node["status"].pop("conditions", None)
        await client.create(_NODES, node)


class _Kwok:
    """kwok, as a process."""

    def __init__(self, folder: Path, files: list[Path]) -> None:
        self._command = [
            str(PROGRAMS / "kwok"),
            f"--kubeconfig={folder}/data/admin.kubeconfig",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=40",
            *(f"--config={each}" for each in files),
        ]
        self._log = folder / "kwok.log"
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> None:
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(*self._command, stdout=log, stderr=log)

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        if self._process.returncode is not None:
            print(self._log.read_text()[-2000:])
        else:
            self._process.terminate()
        await self._process.wait()


async def outcome(client: Client, found: Set) -> Plain:
    """Plays all cases of a set at once, each in its namespace."""
    await rest(client)
    for case in found.cases:
        await client.create(_NAMESPACES, {"metadata": {"name": case.name}})
    await rest(client, quiet=0.5)
    for case in found.cases:
        for each in case.objects:
            await client.create(_BY_KIND[each["kind"]], each, case.name)
    await rest(client)
    for case in found.cases:
        for name, patch in case.patches:
            await client.patch(_PODS, name, case.name, patch, media=MERGE_PATCH)
        for name in case.deleted:
            try:
                await client.delete(_PODS, name, case.name)
            except StatusError as error:
                if not is_not_found(error):
                    raise
    await rest(client)
    told = {case.name: await told_of(client, case.name) for case in found.cases}
    nodes = (await client.list(_NODES)).items
    return {**told, "nodes": [node_as_told(each) for each in nodes]}


async def rest(client: Client, quiet: float = _QUIET) -> None:
    """Returns when pods and nodes have not changed for a while."""
    loop = asyncio.get_running_loop()
    until, seen, since = loop.time() + _PATIENCE, "", loop.time()
    while loop.time() < until and loop.time() - since < quiet:
        await asyncio.sleep(0.25)
        lists = [await client.list(each) for each in (_PODS, _NODES, _JOBS, _CONFIG_MAPS)]
        now = json.dumps([[each["metadata"]["resourceVersion"] for each in some.items] for some in lists])
        if now != seen:
            seen, since = now, loop.time()


async def told_of(client: Client, namespace: str) -> Plain:
    """Pods and kwok's events of a namespace."""
    pods = [pod_as_told(each) for each in (await client.list(_PODS, namespace)).items]
    events = Counter(
        json.dumps(
            [
                each["involvedObject"]["kind"],
                _GENERATED.sub(r"\1-*", each["involvedObject"]["name"]),
                each["type"],
                each["reason"],
                each["message"],
                each["source"],
            ]
        )
        for each in (await client.list(_EVENTS, namespace)).items
        if each["source"].get("component") == "kwok_controller" and each["reason"] != "StageFailed"
    )
    others = [other_as_told(each) for each in (await client.list(_CONFIG_MAPS, namespace)).items]
    with ignoring(is_not_found):
        others += [other_as_told(each) for each in (await client.list(_WIDGETS, namespace)).items]
    return {
        "pods": sorted(pods, key=json.dumps),
        "others": sorted(others, key=json.dumps),
        "events": sorted(events.items()),
    }


def other_as_told(obj: Plain) -> Plain:
    """An object of another kind without what differs each time."""
    metadata = obj["metadata"]
    kept = {key: metadata.get(key) for key in ("name", "labels", "annotations", "finalizers")}
    told = {"metadata": kept, "status": obj.get("status"), "deleted": "deletionTimestamp" in metadata}
    data = obj.get("data") if metadata["name"] != "kube-root-ca.crt" else None
    return _without_chance({**told, "kind": obj["kind"], "data": data, "spec": obj.get("spec")})


def pod_as_told(pod: Plain) -> Plain:
    """A pod without what differs each time."""
    metadata = pod["metadata"]
    told = {
        "name": _GENERATED.sub(r"\1-*", metadata["name"]),
        "finalizers": metadata.get("finalizers"),
        "deleted": "deletionTimestamp" in metadata,
        "labels": sorted(metadata.get("labels") or {}),
        "annotations": metadata.get("annotations"),
        "status": pod.get("status"),
    }
    return _without_chance({key: value for key, value in told.items() if key != "hostIP"})


def node_as_told(node: Plain) -> Plain:
    """Return the parts of a node that stages write."""
    status = node["status"]
    return _without_chance(
        {
            "name": node["metadata"]["name"],
            "conditions": status.get("conditions"),
            "phase": status.get("phase"),
            "addresses": status.get("addresses"),
            "allocatable": status.get("allocatable"),
        }
    )


def _without_chance(value: Plain) -> Plain:
    text = _POD_ADDRESS.sub("POD-ADDRESS", _TIME.sub("TIME", json.dumps(value, sort_keys=True)))
    return json.loads(re.sub(r"172\.16\.0\.\d+", "HOST-ADDRESS", text))  # type: ignore[no-any-return]


def lines(value: Any) -> list[str]:
    """Something as text that can be compared."""
    return json.dumps(value, indent=1, sort_keys=True).splitlines()


async def compare(found: Set) -> tuple[int, int]:
    """Return the number of equal cases of a set, and the number of all its cases."""
    theirs, ours = await asyncio.gather(play(found, ours=False), play(found, ours=True))
    alike = 0
    for name in theirs:
        difference = list(
            difflib.unified_diff(lines(theirs[name]), lines(ours[name]), "kwok", "ours", lineterm="", n=1)
        )
        alike += not difference
        if difference:
            print(f"--- {found.name}, {name}", *difference, sep="\n", flush=True)
    print(f"{found.name}: {alike} of {len(theirs)} alike", flush=True)
    return alike, len(theirs)


def main() -> int:
    """The command; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.stage_comparison", description=__doc__)
    parser.add_argument(
        "sets", nargs="*", metavar="SET", help=f"of {', '.join(each.name for each in SETS)}; all by default"
    )
    asked = parser.parse_args().sets
    counts = [asyncio.run(compare(each)) for each in SETS if not asked or each.name in asked]
    return 0 if all(alike == of for alike, of in counts) else 1
