"""Tests of kr8s, a client for Python that many operators' tests use, against a server process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

from steersman.testing import ServerProcess

pytest.importorskip("kr8s", reason="the package `kr8s` is not installed: make install")

import kr8s.asyncio
from kr8s.asyncio.objects import ConfigMap, Deployment, Namespace, Pod, new_class

pytestmark = [
    pytest.mark.slow,
    # It knows of versions up to that of its own release.
    pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported:UserWarning"),
]

TIMEOUT = 10
_NUMBERS = count(1)


@pytest.fixture
async def cluster(server: ServerProcess) -> AsyncIterator[Any]:
    """Yield the client that a program gets from the kubeconfig, in a fresh namespace."""
    made: Any = await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig))
    namespace = await Namespace({"metadata": {"name": f"kr8s-{next(_NUMBERS)}"}}, api=made)
    await namespace.create()
    made.namespace = namespace.name
    yield made
    await namespace.delete()
    # It leaves its connections to the garbage collector, which complains.
    await made._session.aclose()


async def pod(cluster: Any, name: str, **labels: str) -> Pod:
    metadata = {"name": name, "namespace": cluster.namespace, "labels": labels}
    made: Pod = await Pod(
        {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}, api=cluster
    )
    await made.create()
    return made


async def deployment(cluster: Any) -> Deployment:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    made: Deployment = await Deployment(
        {"metadata": {"name": "web", "namespace": cluster.namespace}, "spec": spec}, api=cluster
    )
    await made.create()
    return made


async def test_who_asks_and_whom(cluster: Any) -> None:
    assert (await cluster.version())["major"] == "1"
    assert await cluster.whoami() == "kubernetes-admin"
    assert {"pods", "deployments", "cronjobs"} <= {each["name"] for each in await cluster.api_resources()}


async def test_objects_are_made_found_and_deleted(cluster: Any) -> None:
    metadata = {"name": "settings", "namespace": cluster.namespace}
    made = await ConfigMap({"metadata": metadata, "data": {"a": "b"}}, api=cluster)
    assert not await made.exists()
    await made.create()
    with pytest.raises(kr8s.ServerError, match='configmaps "settings" already exists'):
        await made.create()
    found = await ConfigMap.get("settings", namespace=cluster.namespace, api=cluster)
    assert found.data.a == "b"
    assert [each.name async for each in cluster.get("configmaps", namespace=cluster.namespace)] == ["settings"]
    await found.patch({"data": {"c": "d"}})
    await found.patch([{"op": "remove", "path": "/data/a"}], type="json")
    await made.refresh()
    assert made.data == {"c": "d"}
    await made.delete()
    assert not await made.exists()
    with pytest.raises(kr8s.NotFoundError):
        await ConfigMap.get("settings", namespace=cluster.namespace, api=cluster, timeout=0)


async def test_selectors(cluster: Any) -> None:
    await pod(cluster, "first", app="web")
    await pod(cluster, "second", app="db")

    async def names(**options: Any) -> list[str]:
        return [each.name async for each in cluster.get("pods", namespace=cluster.namespace, **options)]

    assert await names() == ["first", "second"]
    assert await names(label_selector={"app": "db"}) == ["second"]
    assert await names(field_selector={"metadata.name": "first"}) == ["first"]
    assert await names(label_selector="app notin (web)", field_selector="status.phase=Running") == []


async def test_labels_and_annotations(cluster: Any) -> None:
    made = await pod(cluster, "web")
    await made.label(app="web", tier="front")
    await made.annotate({"example.com/note": "text"})
    await made.remove_label("tier")
    found = await Pod.get("web", namespace=cluster.namespace, api=cluster)
    assert found.labels == {"app": "web"}
    assert found.annotations == {"example.com/note": "text"}


async def test_a_deployment_is_scaled(cluster: Any) -> None:
    made = await deployment(cluster)
    await made.scale(3)
    assert made.replicas == 3
    assert not await made.ready()
    found = await Deployment.get("web", namespace=cluster.namespace, api=cluster)
    assert (found.spec.replicas, found.metadata.generation) == (3, 2)
    await found.patch({"status": {"observedGeneration": 2, "readyReplicas": 3, "replicas": 3}}, subresource="status")
    assert await made.ready()


async def test_a_watch_tells_what_has_happened_since(cluster: Any) -> None:
    made = await pod(cluster, "web")
    other = await Pod.get("web", namespace=cluster.namespace, api=cluster)
    await other.label(app="web")
    await other.delete(force=True)
    watch = made.watch()
    async with asyncio.timeout(TIMEOUT), contextlib.aclosing(watch):
        assert [(await anext(watch))[0] for _ in range(3)] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert made.metadata.deletionTimestamp
    assert made.labels == {"app": "web"}


async def test_waiting_for_a_condition_and_for_the_end(cluster: Any) -> None:
    made = await pod(cluster, "web")
    conditions = ("condition=Ready", "jsonpath='{.status.phase}'=Running", "delete")
    others = [await Pod.get("web", namespace=cluster.namespace, api=cluster) for _ in conditions]
    waiting = [
        asyncio.create_task(other.wait(condition, timeout=TIMEOUT))
        for other, condition in zip(others, conditions, strict=True)
    ]
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await made.patch({"status": status}, subresource="status")
    await asyncio.gather(*waiting[:2])
    await made.delete(force=True)
    await waiting[2]


async def test_kinds_that_it_does_not_know_are_found_by_discovery(cluster: Any) -> None:
    lease_class = new_class(kind="Lease", version="coordination.k8s.io/v1", namespaced=True, plural="leases")
    metadata = {"name": "lock", "namespace": cluster.namespace}
    made = await lease_class({"metadata": metadata, "spec": {"holderIdentity": "me"}}, api=cluster)
    await made.create()
    found = [each async for each in cluster.get("leases.coordination.k8s.io", "lock", namespace=cluster.namespace)]
    assert [each.spec.holderIdentity for each in found] == ["me"]
