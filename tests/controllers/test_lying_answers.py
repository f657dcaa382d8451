"""Answers of aggregated servers with other shapes than the API promises: controllers get one of their errors."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest

from steersman.api.autoscaling.v1 import Scale
from steersman.api.autoscaling.v2 import CrossVersionObjectReference
from steersman.api.meta.v1 import OwnerReference
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.discovery import preferred_resources
from steersman.client.informer import Informers
from steersman.client.transport import Fields, Unreachable
from steersman.controllers.autoscaling.metrics import MetricsClient
from steersman.controllers.autoscaling.replicas import NoProposal
from steersman.controllers.autoscaling.targets import Mapper, get_scale, put_scale
from steersman.controllers.disruption.scales import Scales
from steersman.work.work_queue import TryLater
from tests.lies import lies

GROUPS: Final = {"groups": [{"name": "custom.metrics.k8s.io", "preferredVersion": {"version": "v1beta2"}}]}
RESOURCES: Final = {"resources": [{"name": "things", "kind": "Thing"}, {"name": "things/scale", "kind": "Scale"}]}
PODS_RESOURCE: Final = {"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced"}
DISCOVERY: Final = {
    "items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [PODS_RESOURCE]}]}]
}
SCALE: Final = {"metadata": {"uid": "u", "name": "x"}, "spec": {"replicas": 3}, "status": {"selector": "a=b"}}
VALUE: Final = {
    "describedObject": {"name": "x", "namespace": "default"},
    "metric": {"name": "m"},
    "metricName": "m",
    "metricLabels": {"a": "b"},
    "timestamp": "2026-01-01T00:00:00Z",
    "windowSeconds": 60,
    "window": 60,
    "value": "1",
}
METRICS: Final = {"items": [VALUE]}
USAGE: Final = {"name": "c", "usage": {"cpu": "1"}}
POD_METRICS: Final = {
    "items": [
        {
            "metadata": {"name": "x"},
            "timestamp": "2026-01-01T00:00:00Z",
            "window": "1m",
            "containers": [USAGE],
        }
    ]
}
THINGS: Final = APIResource[Any]("example.com", "v1", "things", "Thing", dict)
OWNER: Final = OwnerReference(api_version="example.com/v1", kind="Thing", name="x", uid="u")


class _Answer:
    status = 200

    def __init__(self, body: bytes) -> None:
        self._body = body

    def header(self, name: str) -> str:
        return ""

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body

    async def aclose(self) -> None:
        """Do nothing."""


class _Server:
    """Answers by the path: discovery, scales and metrics; `lies` are the bodies of paths that end with the keys."""

    def __init__(self) -> None:
        self.lies: dict[str, bytes] = {}

    async def send(self, method: str, target: str, fields: Fields, body: bytes) -> _Answer:
        path = target.partition("?")[0]
        for ending, lie in self.lies.items():
            if path.endswith(ending):
                return _Answer(lie)
        truth: Any = METRICS
        if path in ("/api", "/apis"):
            truth = {**GROUPS, **DISCOVERY}
        elif path.endswith("/example.com/v1"):
            truth = RESOURCES
        elif path.endswith("/scale"):
            truth = SCALE
        elif "metrics.k8s.io/v1beta1/namespaces/default/pods" in path and path.startswith("/apis/metrics"):
            truth = POD_METRICS
        return _Answer(json.dumps(truth).encode())

    async def aclose(self) -> None:
        """Do nothing."""


Question = Callable[[Client], Awaitable[Any]]


def _metrics(client: Client) -> MetricsClient:
    return MetricsClient(client, Mapper(client))


_OF: Final = CrossVersionObjectReference(api_version="v1", kind="Pod", name="x")
QUESTIONS: Final[dict[str, tuple[str, Any, Question]]] = {
    "discovery": ("/apis", DISCOVERY, preferred_resources),
    "kinds": ("/example.com/v1", RESOURCES, lambda c: Scales(c, Informers(c)).get(OWNER, "default")),
    "scale": ("/scale", SCALE, lambda c: Scales(c, Informers(c)).get(OWNER, "default")),
    "target": ("/scale", SCALE, lambda c: get_scale(c, THINGS, "default", "x")),
    "scaled": ("/scale", SCALE, lambda c: put_scale(c, THINGS, Scale())),
    "mapping": ("/apis", DISCOVERY, lambda c: Mapper(c).resource_of("", "Pod")),
    "groups": ("/apis", GROUPS, lambda c: _metrics(c).get_pod_metrics("default", "", "m", "")),
    "usage": ("/pods", POD_METRICS, lambda c: _metrics(c).get_resource_metrics("default", "", "cpu", "")),
    "custom": ("/m", METRICS, lambda c: _metrics(c).get_pod_metrics("default", "", "m", "")),
    "object": ("/m", METRICS, lambda c: _metrics(c).get_object_metric("default", _OF, "m", "")),
    "external": ("/m", METRICS, lambda c: _metrics(c).get_external_metric("default", "m", "")),
}


@pytest.mark.parametrize("asked", QUESTIONS)
async def test_a_lie_is_an_error_that_the_controllers_expect(asked: str) -> None:
    ending, truth, question = QUESTIONS[asked]
    server = _Server()
    await question(Client(server, "test"))
    for lie in lies(truth):
        server.lies = {ending: lie}
        try:
            await question(Client(server, "test"))
        except (NoProposal, Unreachable, TryLater):
            pass
        except Exception as error:
            pytest.fail(f"{lie[:200]!r}: {error!r}")
