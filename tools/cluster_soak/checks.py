"""Checks that a cluster has reached the requested state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from steersman.testing import BlockingClient
from tools.cluster_soak.work import BUSY, KINDS, MILLICORES, World, path_of

Plain = dict[str, Any]


def wrong(client: BlockingClient, world: World) -> list[str]:
    """Return the objects that are not (yet) as requested."""
    return [*_namespaces(client, world), *_objects(client, world), *_pods(client), *_claims(client), *_quotas(client)]


def _list(client: BlockingClient, path: str) -> list[Plain]:
    code, found = client.json("GET", path)
    assert code == 200, found
    items: list[Plain] = found["items"]
    return items


def _namespaces(client: BlockingClient, world: World) -> Iterator[str]:
    there = {each["metadata"]["name"]: each for each in _list(client, "/api/v1/namespaces")}
    unsure = {name for namespace, _, name in world.unsure if not namespace}
    for name in world.namespaces - there.keys() - unsure:
        yield f"namespace {name} was made and is not there"
    for name, each in there.items():
        if each["status"]["phase"] == "Terminating":
            yield f"namespace {name} is not gone: {each['status'].get('conditions')}"
        elif name.startswith("ns-") and name not in world.namespaces | unsure:
            yield f"namespace {name} was deleted and is there"


def _objects(client: BlockingClient, world: World) -> Iterator[str]:
    for kind, prefix in KINDS.items():
        found = {
            (each["metadata"]["namespace"], kind, each["metadata"]["name"]): each
            for each in _list(client, f"/{prefix}/{kind.lower()}s")
        }
        wanted = {key: made for key, made in world.objects.items() if key[1] == kind and key not in world.unsure}
        for key, made in wanted.items():
            there = found.get(key)
            if there is None:
                yield f"{path_of(*_turned(key))} was made and is not there"
            elif int(there["metadata"].get("generation", 0)) < int(made.get("metadata", {}).get("generation", 0)):
                yield f"{path_of(*_turned(key))} is older than what was acknowledged"
        for key, there in found.items():
            ours = key[0].startswith("ns-") and key[2] != "kube-root-ca.crt"
            if ours and key not in world.objects and key not in world.unsure:
                yield f"{path_of(*_turned(key))} was deleted and is there"
            if ours and (short := _incomplete(kind, there)):
                yield f"{path_of(*_turned(key))}: {short}"
        if kind == "HorizontalPodAutoscaler":
            yield from _autoscalers(client, found.values())


def _turned(key: tuple[str, str, str]) -> tuple[str, str, str]:
    return key[1], key[0], key[2]


def _incomplete(kind: str, obj: Plain) -> str:
    """Return the missing part of a workload, "" if it is complete."""
    spec, status = obj.get("spec", {}), obj.get("status", {})
    generation = obj["metadata"].get("generation")
    if kind in ("Deployment", "StatefulSet", "DaemonSet") and status.get("observedGeneration") != generation:
        return f"generation {generation} is not seen"
    match kind:
        case "Deployment":
            wanted = spec.get("replicas", 1)
            counts = [status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas")]
            return "" if counts == [wanted] * 3 else f"{wanted} replicas wanted, status {counts}"
        case "StatefulSet":
            wanted = spec.get("replicas", 1)
            counts = [status.get(each, 0) for each in ("replicas", "updatedReplicas", "readyReplicas")]
            return "" if counts == [wanted] * 3 else f"{wanted} replicas wanted, status {counts}"
        case "DaemonSet":
            wanted = status.get("desiredNumberScheduled", 0)
            counts = [status.get(each, 0) for each in ("updatedNumberScheduled", "numberAvailable")]
            return "" if counts == [wanted] * 2 else f"{wanted} pods wanted, status {counts}"
        case "Job":
            done = any(each["type"] == "Complete" and each["status"] == "True" for each in status.get("conditions", []))
            return "" if done else f"not complete: {status}"
    return ""


def _autoscalers(client: BlockingClient, autoscalers: Iterable[Plain]) -> Iterator[str]:
    scaled = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each["spec"].get("replicas", 1)
        for each in _list(client, "/apis/apps/v1/deployments")
    }
    for each in autoscalers:
        metadata, spec, status = each["metadata"], each["spec"], each.get("status", {})
        replicas = scaled.get((metadata["namespace"], spec["scaleTargetRef"]["name"]))
        if not replicas:
            continue  # its Deployment is gone, or wants none
        target = spec["metrics"][0]["resource"]["target"]["averageUtilization"]
        wanted = spec["maxReplicas"] if target == BUSY else spec["minReplicas"]
        if replicas != wanted or status.get("currentReplicas") != wanted:
            yield f"autoscaler {metadata['namespace']}/{metadata['name']}: {replicas} of {wanted} replicas: {status}"


def _quotas(client: BlockingClient) -> Iterator[str]:
    """Quotas that do not say what is used."""
    quotas = _list(client, "/api/v1/resourcequotas")
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for name, path in (
        ("configmaps", "api/v1/configmaps"),
        ("services", "api/v1/services"),
        ("count/deployments.apps", "apis/apps/v1/deployments"),
        ("pods", "api/v1/pods"),
    ):
        for each in _list(client, f"/{path}") if quotas else ():
            if name == "pods" and each["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            of = used[each["metadata"]["namespace"]]
            of[name] += 1
            if name == "pods":
                of["requests.cpu"] += MILLICORES
    for each in quotas:
        namespace, status = each["metadata"]["namespace"], each.get("status", {})
        told = {name: _milli(value) for name, value in status.get("used", {}).items()}
        truth = {name: used[namespace][name] * (1 if name == "requests.cpu" else 1000) for name in each["spec"]["hard"]}
        if told != truth:
            yield f"quota {namespace}/{each['metadata']['name']} says {told}, and {truth} are used"


def _milli(quantity: str) -> int:
    if quantity.endswith("m"):
        return int(quantity[:-1])
    return int(quantity[:-1]) * 1_000_000 if quantity.endswith("k") else int(quantity) * 1000


def _pods(client: BlockingClient) -> Iterator[str]:
    pods = _list(client, "/api/v1/pods")
    addresses = Counter(
        each["status"]["podIP"]
        for each in pods
        if each["status"].get("podIP") and each["status"].get("phase") not in ("Succeeded", "Failed")
    )
    yield from (f"{number} pods have the address {address}" for address, number in addresses.items() if number > 1)
    owners = {
        each["metadata"]["uid"]
        for path in (
            "apis/apps/v1/replicasets",
            "apis/apps/v1/statefulsets",
            "apis/apps/v1/daemonsets",
            "apis/batch/v1/jobs",
        )
        for each in _list(client, f"/{path}")
    }
    for pod in pods:
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata:
            yield f"pod {metadata['namespace']}/{metadata['name']} is being deleted and not gone"
        for owner in metadata.get("ownerReferences", []):
            if owner["uid"] not in owners:
                yield f"pod {metadata['namespace']}/{metadata['name']} has lost its owner {owner['kind']}"


def _claims(client: BlockingClient) -> Iterator[str]:
    used: Counter[str] = Counter()
    for claim in _list(client, "/api/v1/persistentvolumeclaims"):
        metadata = claim["metadata"]
        if claim["status"].get("phase") != "Bound":
            yield f"claim {metadata['namespace']}/{metadata['name']} is {claim['status'].get('phase')}"
        used[claim["spec"].get("volumeName", "")] += 1
    yield from (f"{number} claims have the volume {name}" for name, number in used.items() if name and number > 1)
    for volume in _list(client, "/api/v1/persistentvolumes"):
        if volume["status"].get("phase") != "Bound":
            name = volume["metadata"]["name"]
            attached = [
                (each["metadata"], each["status"])
                for each in _list(client, "/apis/storage.k8s.io/v1/volumeattachments")
                if each["spec"]["source"].get("persistentVolumeName") == name
            ]
            yield f"volume {name} is {volume['status'].get('phase')}: {volume['metadata']}, attached: {attached}"
