"""Random work on a cluster, and what of it was acknowledged."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from steersman.testing import BlockingClient

Plain = dict[str, Any]

UNREACHABLE: Final = "simulation.steersman.dev/unreachable"
KINDS: Final = {
    "Deployment": "apis/apps/v1",
    "StatefulSet": "apis/apps/v1",
    "DaemonSet": "apis/apps/v1",
    "Job": "apis/batch/v1",
    "Service": "api/v1",
    "ConfigMap": "api/v1",
    "PodDisruptionBudget": "apis/policy/v1",
    "ResourceQuota": "api/v1",
    "HorizontalPodAutoscaler": "apis/autoscaling/v2",
}
"""Kinds of created objects, with their API paths."""
BUSY: Final = 4
IDLE: Final = 60
"""Percent of the cpu they ask for that autoscalers want pods to use: as each uses ten, there are as many as may be,
or as few."""
MILLICORES: Final = 50
"""CPU request of each pod."""
_MOST: Final = 40
"""Objects at a time, beyond which more are deleted than made."""


class Refused(Exception):
    """The server answered a request that must succeed with an error."""


def path_of(kind: str, namespace: str, name: str = "") -> str:
    """The path of an object, or of all of a namespace."""
    return f"/{KINDS[kind]}/namespaces/{namespace}/{kind.lower()}s" + (f"/{name}" if name else "")


@dataclass
class World:
    """Expected objects by namespace, kind and name, each as it was acknowledged last."""

    namespaces: set[str] = field(default_factory=set)
    objects: dict[tuple[str, str, str], Plain] = field(default_factory=dict)
    unsure: set[tuple[str, str, str]] = field(default_factory=set)
    """Objects and namespaces ("", "", name) about which a request had no answer."""


class Work:
    """Does one random thing after the other. Raises OSError, HTTPException when the server is gone, Refused."""

    def __init__(self, random: Random, nodes: list[str]) -> None:
        self.world = World()
        self.done: dict[str, int] = {}
        self._random = random
        self._nodes = nodes
        self._count = 0

    def step(self, client: BlockingClient) -> None:
        """One thing."""
        world = self.world
        choices: list[tuple[Callable[[BlockingClient], None], int]] = [
            (self._make_namespace, 6 if len(world.namespaces) < 4 else 0),
            (self._delete_namespace, 1),
            (self._make, 12 if len(world.objects) < _MOST else 2),
            (self._scale, 8),
            (self._roll_out, 4),
            (self._delete, 4 if len(world.objects) < _MOST else 12),
            (self._delete_pod, 4),
            (self._fail_node, 1),
            (self._heal_node, 2),
            (self._cordon, 1),
            (self._evict, 3),
        ]
        actions, weights = zip(*choices, strict=True)
        (action,) = self._random.choices(actions, weights)
        action(client)
        name = action.__name__.strip("_")
        self.done[name] = self.done.get(name, 0) + 1

    def heal(self, client: BlockingClient) -> None:
        """Every node can be used again."""
        for node in self._nodes:
            patch = {"metadata": {"annotations": {UNREACHABLE: None}}, "spec": {"unschedulable": None}}
            self._ask(client, "PATCH", f"/api/v1/nodes/{node}", patch)

    # Actions

    def _make_namespace(self, client: BlockingClient) -> None:
        name = self._name("ns")
        self._sure(
            ("", "", name), lambda: self._ask(client, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        )
        self.world.namespaces.add(name)

    def _delete_namespace(self, client: BlockingClient) -> None:
        if len(self.world.namespaces) > 2:
            name = self._random.choice(sorted(self.world.namespaces))
            self.world.namespaces.discard(name)
            for key in [key for key in self.world.objects if key[0] == name]:
                del self.world.objects[key]
            self._sure(("", "", name), lambda: self._ask(client, "DELETE", f"/api/v1/namespaces/{name}"))

    def _make(self, client: BlockingClient) -> None:
        if not self.world.namespaces:
            return
        namespace = self._random.choice(sorted(self.world.namespaces))
        kind = self._random.choice(sorted(KINDS))
        name = self._name(kind.lower()[:8])
        if kind == "HorizontalPodAutoscaler":  # one for each Deployment, of its name
            free = sorted(
                each
                for of, made, each in self.world.objects
                if of == namespace and made == "Deployment" and (of, kind, each) not in self.world.objects
            )
            if not free:
                return
            name = self._random.choice(free)
        obj = {"metadata": {"name": name}, **self._body(kind, name)}
        key = namespace, kind, name

        def ask() -> Plain | None:
            return self._ask(client, "POST", path_of(kind, namespace), obj, allowed=(403,))

        made = self._sure(key, ask)
        if made is not None:
            self.world.objects[key] = made

    def _body(self, kind: str, name: str) -> Plain:
        labels = {"app": name}
        container: Plain = {
            "name": "c",
            "image": "app:1",
            "resources": {"requests": {"cpu": f"{MILLICORES}m", "memory": "32Mi"}},
        }
        template: Plain = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        match kind:
            case "Job":
                container["command"] = ["sleep", str(self._random.randint(0, 5))]
                template["spec"]["restartPolicy"] = "Never"
                return {
                    "spec": {
                        "completions": self._random.randint(1, 6),
                        "parallelism": 3,
                        "backoffLimit": 100,
                        "template": template,
                    }
                }
            case "Service":
                return {"spec": {"selector": labels, "ports": [{"port": 80}]}}
            case "ConfigMap":
                return {"data": {"a": "b" * self._random.randint(1, 2000)}}
            case "PodDisruptionBudget":
                return {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}}}
            case "ResourceQuota":
                hard = dict.fromkeys(("pods", "requests.cpu", "services", "count/deployments.apps"), "100000")
                return {"spec": {"hard": hard | {"configmaps": str(self._random.randint(2, 6))}}}
            case "HorizontalPodAutoscaler":
                return {
                    "spec": {
                        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                        "minReplicas": self._random.randint(1, 2),
                        "maxReplicas": self._random.randint(3, 8),
                        "metrics": [
                            {
                                "type": "Resource",
                                "resource": {
                                    "name": "cpu",
                                    "target": {
                                        "type": "Utilization",
                                        "averageUtilization": self._random.choice([BUSY, IDLE]),
                                    },
                                },
                            }
                        ],
                        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
                    }
                }
        spec: Plain = {"selector": {"matchLabels": labels}, "template": template}
        if kind != "DaemonSet":
            spec["replicas"] = self._random.randint(0, 6)
        if kind == "StatefulSet":
            claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            spec |= {
                "serviceName": name,
                "podManagementPolicy": self._random.choice(["OrderedReady", "Parallel"]),
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
            }
        return {"spec": spec}

    def _scale(self, client: BlockingClient) -> None:
        self._patch(client, ("Deployment", "StatefulSet"), {"spec": {"replicas": self._random.randint(0, 8)}})

    def _roll_out(self, client: BlockingClient) -> None:
        container = {"name": "c", "image": f"app:{self._random.randint(1, 5)}"}
        patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
        self._patch(client, ("Deployment", "StatefulSet", "DaemonSet"), patch, media="strategic-merge-patch")

    def _patch(self, client: BlockingClient, kinds: tuple[str, ...], patch: Plain, media: str = "merge-patch") -> None:
        key = self._any(kinds)
        if key is not None:
            namespace, kind, name = key

            def ask() -> Plain | None:
                return self._ask(client, "PATCH", path_of(kind, namespace, name), patch, media=media)

            self.world.objects[key] = self._sure(key, ask) or {}

    def _delete(self, client: BlockingClient) -> None:
        key = self._any(tuple(KINDS))
        if key is not None:
            del self.world.objects[key]
            options = {"propagationPolicy": self._random.choice(["Background", "Foreground"])}
            self._sure(key, lambda: self._ask(client, "DELETE", path_of(key[1], key[0], key[2]), options))

    def _delete_pod(self, client: BlockingClient) -> None:
        pod = self._any_pod(client)
        if pod is not None:
            self._ask(client, "DELETE", pod, allowed=(404,))

    def _evict(self, client: BlockingClient) -> None:
        pod = self._any_pod(client)
        if pod is not None:
            name = pod.rpartition("/")[2]
            self._ask(
                client, "POST", f"{pod}/eviction", {"metadata": {"name": name}}, allowed=(403, 404, 409, 429, 500)
            )

    def _fail_node(self, client: BlockingClient) -> None:
        node = self._random.choice(self._nodes[1:])
        patch = {"metadata": {"annotations": {UNREACHABLE: "true"}}}
        self._ask(client, "PATCH", f"/api/v1/nodes/{node}", patch)

    def _heal_node(self, client: BlockingClient) -> None:
        node = self._random.choice(self._nodes)
        patch = {"metadata": {"annotations": {UNREACHABLE: None}}, "spec": {"unschedulable": None}}
        self._ask(client, "PATCH", f"/api/v1/nodes/{node}", patch)

    def _cordon(self, client: BlockingClient) -> None:
        node = self._random.choice(self._nodes[1:])
        self._ask(client, "PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})

    # With what

    def _any(self, kinds: tuple[str, ...]) -> tuple[str, str, str] | None:
        found = sorted(key for key in self.world.objects if key[1] in kinds and key not in self.world.unsure)
        return self._random.choice(found) if found else None

    def _any_pod(self, client: BlockingClient) -> str | None:
        found = self._ask(client, "GET", "/api/v1/pods")
        assert found is not None
        pods = [each["metadata"] for each in found["items"]]
        if not pods:
            return None
        pod = self._random.choice(pods)
        return f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}"

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}-{self._count}"

    def _sure(self, key: tuple[str, str, str], ask: Callable[[], Plain | None]) -> Plain | None:
        """Return the answer of a request. Without an answer the state of `key` is unknown from then on."""
        try:
            return ask()
        except (OSError, http.client.HTTPException):
            self.world.unsure.add(key)
            raise

    def _ask(
        self,
        client: BlockingClient,
        method: str,
        path: str,
        body: Plain | None = None,
        *,
        allowed: tuple[int, ...] = (),
        media: str = "merge-patch",
    ) -> Plain | None:
        """The answer; None for an error that may be."""
        headers = {"Content-Type": f"application/{media}+json"} if method == "PATCH" else None
        code, answer = client.request(method, path, body, headers)
        if code >= 300:
            if code in allowed:
                return None
            raise Refused(f"{method} {path}: {code} {answer[:300]!r}")
        document: Plain = json.loads(answer)
        return document
