"""The Kubernetes project's own client for Python (`kubernetes`) against a server process."""

from __future__ import annotations

import asyncio
import datetime
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.storage.sqlite import SQLiteStorage
from steersman.testing import ServerProcess

pytest.importorskip("kubernetes", reason="the package `kubernetes` is not installed: make install")

from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

pytestmark = pytest.mark.slow

MERGE = "application/merge-patch+json"
PATIENCE = 10.0


@pytest.fixture(scope="module")
def api_client(server: ServerProcess) -> Iterator[Any]:
    """Yield the client that a program gets from the kubeconfig."""
    made = config.new_client_from_config(config_file=str(server.kubeconfig))
    yield made
    made.close()


@pytest.fixture(scope="module")
def core(api_client: Any) -> Any:
    return client.CoreV1Api(api_client)


@pytest.fixture
def namespace(core: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace."""
    name = core.create_namespace({"metadata": {"generateName": "python-"}}).metadata.name
    yield name
    core.delete_namespace(name)


def config_map(name: str, **data: str) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"app": "a"}), data=data)


def pod(name: str, *containers: str) -> Any:
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name),
        spec=client.V1PodSpec(
            containers=[client.V1Container(name=each, image="nginx") for each in containers or ("main",)]
        ),
    )


def refused(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[int, dict[str, Any]]:
    """Return status and body of the ApiException that the call raises."""
    with pytest.raises(ApiException) as caught:
        call(*arguments, **options)
    assert caught.value.headers["Content-Type"] == "application/json"
    body = json.loads(caught.value.body)
    assert (body["kind"], body["code"]) == ("Status", caught.value.status)
    return caught.value.status, body


def test_the_server_tells_its_version(api_client: Any) -> None:
    code = client.VersionApi(api_client).get_code()
    assert (code.major, code.minor) == ("1", "36")
    groups = {group.name for group in client.ApisApi(api_client).get_api_versions().groups}
    assert {"apps", "batch", "rbac.authorization.k8s.io"} <= groups


# Objects


def test_the_life_of_a_config_map(core: Any, namespace: str) -> None:
    made = core.create_namespaced_config_map(namespace, config_map("settings", color="blue"))
    assert made.metadata.creation_timestamp.tzinfo is not None
    namespaced_config_map = core.read_namespaced_config_map("settings", namespace)
    assert namespaced_config_map == made
    namespaced_config_map.data["size"] = "large"
    changed = core.replace_namespaced_config_map("settings", namespace, namespaced_config_map)
    assert changed.data == {"color": "blue", "size": "large"}
    code, body = refused(core.replace_namespaced_config_map, "settings", namespace, namespaced_config_map)
    assert (code, body["reason"]) == (409, "Conflict")
    assert core.delete_namespaced_config_map("settings", namespace).status == "Success"
    assert refused(core.read_namespaced_config_map, "settings", namespace)[0] == 404


def test_patches_by_content_type(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("settings", color="blue", size="large"))
    merged = core.patch_namespaced_config_map(
        "settings", namespace, {"data": {"color": "red", "size": None}}, _content_type=MERGE
    )
    assert merged.data == {"color": "red"}
    operations = [{"op": "replace", "path": "/data/color", "value": "green"}]
    assert core.patch_namespaced_config_map("settings", namespace, operations).data == {"color": "green"}


def test_a_deployment_and_its_scale(api_client: Any, namespace: str) -> None:
    apps = client.AppsV1Api(api_client)
    labels = {"app": "web"}
    template = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels=labels), spec=pod("web").spec)
    spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels=labels), template=template)
    body = client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    made = apps.create_namespaced_deployment(namespace, body)
    assert (made.spec.replicas, made.spec.strategy.type) == (1, "RollingUpdate")
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    scale.spec.replicas = 3
    assert apps.replace_namespaced_deployment_scale("web", namespace, scale).spec.replicas == 3
    status = {"status": {"replicas": 2, "readyReplicas": 1}}
    apps.patch_namespaced_deployment_status("web", namespace, status, _content_type=MERGE)
    deployment = apps.read_namespaced_deployment("web", namespace)
    assert (
        deployment.spec.replicas,
        deployment.status.ready_replicas,
        deployment.metadata.generation,
    ) == (3, 1, 2)
    assert [each.metadata.name for each in apps.list_deployment_for_all_namespaces().items] == ["web"]


def test_jobs_and_cron_jobs(api_client: Any, namespace: str) -> None:
    batch = client.BatchV1Api(api_client)
    spec = pod("once").spec
    spec.restart_policy = "Never"
    job = client.V1JobSpec(template=client.V1PodTemplateSpec(spec=spec), backoff_limit=2)
    made = batch.create_namespaced_job(namespace, client.V1Job(metadata=client.V1ObjectMeta(name="once"), spec=job))
    assert made.spec.backoff_limit == 2
    assert made.spec.selector.match_labels == {"batch.kubernetes.io/controller-uid": made.metadata.uid}
    often = client.V1CronJob(
        metadata=client.V1ObjectMeta(name="often"),
        spec=client.V1CronJobSpec(schedule="@hourly", job_template=client.V1JobTemplateSpec(spec=job)),
    )
    assert batch.create_namespaced_cron_job(namespace, often).spec.concurrency_policy == "Allow"
    batch.delete_collection_namespaced_job(namespace, propagation_policy="Background")
    assert batch.list_namespaced_job(namespace).items == []


def test_lists_in_pages(core: Any, namespace: str) -> None:
    for number in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"m{number}"))
    names, following = [], None
    while following != "":
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=following, label_selector="app=a")
        assert len(page.items) <= 2
        names += [each.metadata.name for each in page.items]
        following = page.metadata._continue or ""
    assert names == [f"m{number}" for number in range(5)]
    assert core.list_namespaced_config_map(namespace, field_selector="metadata.name=m3").items[0].data is None
    code, body = refused(core.list_namespaced_config_map, namespace, _continue="nonsense")
    assert (code, body["reason"]) == (400, "BadRequest")


def test_refusals_tell_what_is_wrong(core: Any, namespace: str) -> None:
    code, body = refused(core.create_namespaced_config_map, namespace, config_map("Not_A_Name"))
    assert (code, body["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in body["details"]["causes"]] == ["metadata.name"]
    core.create_namespaced_config_map(namespace, config_map("taken"))
    code, body = refused(core.create_namespaced_config_map, namespace, config_map("taken"))
    assert (code, body["message"]) == (409, 'configmaps "taken" already exists')
    code, body = refused(core.create_namespaced_pod, "nowhere", pod("web"))
    assert (code, body["message"]) == (404, 'namespaces "nowhere" not found')


# Pods


def test_a_pod_is_evicted(core: Any, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("web"))
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="web"))
    assert core.create_namespaced_pod_eviction("web", namespace, eviction).kind == "Status"
    assert core.list_namespaced_pod(namespace).items == []
    assert refused(core.create_namespaced_pod_eviction, "web", namespace, eviction)[0] == 404


def test_logs_that_there_are_not(core: Any, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("two", "a", "b"))
    assert refused(core.read_namespaced_pod_log, "missing", namespace)[0] == 404
    code, body = refused(core.read_namespaced_pod_log, "two", namespace)
    assert (code, body["reason"]) == (400, "BadRequest")
    assert "a container name must be specified for pod two, choose one of: [a b]" in body["message"]


def test_a_pod_is_bound_and_reports_its_status(core: Any, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("web"))
    target = client.V1ObjectReference(kind="Node", name="node-a")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="web"), target=target)
    core.create_namespaced_pod_binding("web", namespace, binding, _preload_content=False)
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    core.patch_namespaced_pod_status("web", namespace, ready, _content_type=MERGE)
    found = core.list_namespaced_pod(namespace, field_selector="spec.nodeName=node-a,status.phase=Running").items
    assert [each.metadata.name for each in found] == ["web"]


# Watches


def test_a_watch_goes_on_where_the_one_before_ended(core: Any, namespace: str) -> None:
    listed = core.list_namespaced_config_map(namespace)
    for name in "abc":
        core.create_namespaced_config_map(namespace, config_map(name))
    core.delete_namespaced_config_map("b", namespace)
    seen = []
    resumed = listed.metadata.resource_version
    for _ in range(4):
        watching = watch.Watch()
        for event in watching.stream(
            core.list_namespaced_config_map, namespace, resource_version=resumed, timeout_seconds=10
        ):
            seen.append((event["type"], event["object"].metadata.name))
            watching.stop()
        resumed = watching.resource_version
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("DELETED", "b")]


def test_a_watch_ends_in_time_and_tells_bookmarks(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("a"))
    watching = watch.Watch()
    events = [
        (event["type"], (event["raw_object"]["metadata"].get("annotations") or {}).get("k8s.io/initial-events-end"))
        for event in watching.stream(
            core.list_namespaced_config_map,
            namespace,
            timeout_seconds=1,
            allow_watch_bookmarks=True,
            send_initial_events=True,
            resource_version_match="NotOlderThan",
        )
    ]
    assert events == [("ADDED", None), ("BOOKMARK", "true")]


def test_a_watch_from_a_version_that_is_gone_raises_410(make_server: Callable[..., ServerProcess]) -> None:
    server = make_server()
    server.start()
    server.stop()
    asyncio.run(compact_everything(server.folder / "steersman.db"))
    server.start()
    with config.new_client_from_config(config_file=str(server.kubeconfig)) as api_client:
        core = client.CoreV1Api(api_client)
        with pytest.raises(ApiException, match="Expired: too old resource version") as caught:
            list(watch.Watch().stream(core.list_namespace, resource_version="2", timeout_seconds=5))
        assert caught.value.status == 410


async def compact_everything(file: Path) -> None:
    """Forgets all history in a server's file."""
    store = await SQLiteStorage.open(file, compaction_interval=0, lease_interval=0)
    await store.compact(store.revision)
    await store.close()


def test_an_informer_keeps_up(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("first"))
    told: list[tuple[str, str]] = []
    last = threading.Event()
    informer = SharedInformer(core.list_namespaced_config_map, namespace, label_selector="app=a")
    for type_ in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(type_, lambda obj, type_=type_: told.append((type_, obj.metadata.name)))
    informer.add_event_handler("DELETED", lambda obj: last.set() if obj.metadata.name == "second" else None)
    informer.start()
    try:
        core.create_namespaced_config_map(namespace, config_map("second"))
        core.patch_namespaced_config_map(
            "first", namespace, {"metadata": {"labels": {"app": "b"}}}, _content_type=MERGE
        )
        third = core.create_namespaced_config_map(namespace, config_map("third", color="blue"))
        core.delete_namespaced_config_map("second", namespace)
        assert last.wait(PATIENCE)
        assert informer.cache.list() == [third]
        assert told[-1] == ("DELETED", "second")
    finally:
        informer.stop()


# The dynamic client


def test_the_dynamic_client_finds_its_way_by_discovery(api_client: Any, namespace: str, tmp_path: Path) -> None:
    dynamic = DynamicClient(api_client, cache_file=str(tmp_path / "discovery.json"))
    secrets = dynamic.resources.get(api_version="v1", kind="Secret")
    made = secrets.create({"metadata": {"name": "password"}, "stringData": {"a": "b"}}, namespace=namespace)
    assert made.data.a == "Yg=="
    changed = secrets.patch(
        {"metadata": {"name": "password", "labels": {"x": "y"}}}, namespace=namespace, content_type=MERGE
    )
    assert changed.metadata.labels.x == "y"
    events = secrets.watch(namespace=namespace, timeout=5, resource_version=made.metadata.resourceVersion)
    event = next(events)
    assert (event["type"], event["object"].metadata.name) == ("MODIFIED", "password")
    events.close()
    assert [each.metadata.name for each in secrets.get(namespace=namespace, label_selector="x=y").items] == ["password"]
    secrets.delete("password", namespace=namespace)
    with pytest.raises(NotFoundError, match='secrets \\\\"password\\\\" not found'):
        secrets.get("password", namespace=namespace)
    ingresses = dynamic.resources.get(api_version="networking.k8s.io/v1", kind="Ingress")
    assert ingresses.get(namespace=namespace).items == []
    assert dynamic.resources.search(kind="HorizontalPodAutoscaler", preferred=True)[0].group_version == "autoscaling/v2"


# Leader election


class LeaseLock:
    """A lock of `kubernetes.leaderelection` in a Lease, which that package has none for."""

    def __init__(self, api: Any, name: str, namespace: str, identity: str) -> None:
        self.name, self.namespace, self.identity = name, namespace, identity
        self._api = api
        self._lease: Any = None

    def get(self, name: str, namespace: str) -> tuple[bool, Any]:
        try:
            self._lease = self._api.read_namespaced_lease(name, namespace)
        except ApiException as error:
            return False, error
        spec = self._lease.spec
        seconds, times = spec.lease_duration_seconds, (spec.acquire_time.isoformat(), spec.renew_time.isoformat())
        return True, LeaderElectionRecord(spec.holder_identity, seconds, *times)

    def _spec(self, record: Any) -> Any:
        now = datetime.datetime.now(datetime.UTC)
        return client.V1LeaseSpec(
            holder_identity=record.holder_identity,
            lease_duration_seconds=int(record.lease_duration),
            acquire_time=now,
            renew_time=now,
        )

    def create(self, name: str, namespace: str, election_record: Any) -> bool:
        lease = client.V1Lease(metadata=client.V1ObjectMeta(name=name), spec=self._spec(election_record))
        return self._written(self._api.create_namespaced_lease, namespace, lease)

    def update(self, name: str, namespace: str, updated_record: Any) -> bool:
        self._lease.spec = self._spec(updated_record)
        return self._written(self._api.replace_namespaced_lease, name, namespace, self._lease)

    def _written(self, write: Callable[..., Any], *arguments: Any) -> bool:
        try:
            write(*arguments)
        except ApiException as error:
            if error.status != 409:
                raise
            return False
        return True


@pytest.mark.parametrize("kind", ["Lease", "ConfigMap"])
def test_one_candidate_leads_until_it_stops_renewing(
    api_client: Any, core: Any, namespace: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    now: Any = SimpleNamespace(time=lambda: now.value, value=1_700_000_000.0)
    monkeypatch.setattr("kubernetes.leaderelection.leaderelection.time", now)

    def candidate(identity: str) -> Any:
        if kind == "Lease":
            lock: Any = LeaseLock(client.CoordinationV1Api(api_client), "leader", namespace, identity)
        else:
            lock = ConfigMapLock("leader", namespace, identity)
            lock.api_instance = core
        return LeaderElection(Config(lock, 15, 10, 2, lambda: None, lambda: None))

    first, second = candidate("first"), candidate("second")
    assert first.try_acquire_or_renew()
    assert not second.try_acquire_or_renew()
    now.value += 10
    assert first.try_acquire_or_renew()
    now.value += 10
    assert not second.try_acquire_or_renew()
    now.value += 16
    stale = first.election_config.lock.get("leader", namespace)
    assert second.try_acquire_or_renew()
    assert not first.election_config.lock.update("leader", namespace, stale[1])
    assert not first.try_acquire_or_renew()
