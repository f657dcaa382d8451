"""Large stored objects are never decoded or encoded whole on the event loop's thread."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from steersman.controlplane.parts.keeping import MaintainedObjects
from steersman.kinds.structs import StructKind
from steersman.machinery.large_work.sizes import is_large
from tools.differential.case import named
from tools.differential.objects import Sample, every_sample

PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
MERGE = "application/merge-patch+json"

MANY = {f"label-{number}": "" for number in range(1_500)}
"""Labels that make any object large."""

SAMPLES = [
    pytest.param(sample, number, id=f"{sample.body['kind']}.{sample.api_version}-{number}")
    for number, sample in enumerate(every_sample())
]

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def on_the_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the places that decode or encode large objects on the event loop's thread."""
    loop = threading.get_ident()
    found: list[str] = []
    decode, value = StructKind.decode_struct, StructKind.value

    def note(data: bytes) -> None:
        if threading.get_ident() == loop and is_large(data):
            stack = [each for each in traceback.extract_stack()[:-2] if "steersman" in each.filename]
            found.append(" < ".join(f"{each.filename.rpartition('/')[2]}:{each.lineno}" for each in stack[:-7:-1]))

    def noted_decode(self: Any, data: bytes) -> Any:
        note(data)
        return decode(self, data)

    def noted_value(self: Any, obj: Any) -> bytes:
        made = value(self, obj)
        note(made)
        return made

    monkeypatch.setattr(StructKind, "decode_struct", noted_decode)
    monkeypatch.setattr(StructKind, "value", noted_value)
    yield found
    assert not found


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


async def first_event(api: Any, target: str) -> dict[str, Any]:
    """Return the first event of a watch, and end the watch."""
    async with await api.open("GET", target) as response, asyncio.timeout(10):
        data = b""
        async for part in response:
            data += part
            if b"\n" in data:
                break
    event: dict[str, Any] = json.loads(data.partition(b"\n")[0])
    return event


def selectors(sample: Sample, name: str) -> list[str]:
    """Return selectors by name and by each selectable field; these read every object."""
    every = [f"fieldSelector=metadata.name%3D{name}", "labelSelector=label-7%3D", "fieldSelector=metadata.name!%3Dx"]
    fields = sample.resource.selectable_fields
    other = [each for each in sample.resource.other_versions if sample.api_version == f"{each.group}/{each.version}"]
    if other and other[0].selectable_fields is not None:
        fields = other[0].selectable_fields  # type: ignore[assignment]
    return every + [f"fieldSelector={field}!%3Dnobody" for field in fields]


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "number"), SAMPLES)
async def test_every_verb(
    api: Any, api_with_everything: Any, namespace: str, on_the_loop: list[str], sample: Sample, number: int
) -> None:
    if sample.on_request:
        api = api_with_everything
    name = f"large-{number}"
    body = named(copy.deepcopy(sample.body), name, namespace)
    body.pop("status", None)
    body["metadata"]["labels"] = {**body["metadata"].get("labels", {}), **MANY}
    collection, path = named(sample.collection, name, namespace), named(sample.path, name, namespace)
    await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "web"}})
    answer = await api.post(collection, compact(body), content_type="application/json")
    assert answer.status == 201, answer.body
    name = answer.json()["metadata"]["name"]
    for accept in ("application/json", PROTOBUF, TABLE, PARTIAL, "application/yaml"):
        assert (await api.get(path, accept=accept)).status == 200
    for accept in ("application/json", PROTOBUF, TABLE, PARTIAL_LIST):
        assert (await api.get(collection, accept=accept)).status == 200
    changes = [{"metadata": {"annotations": {"change": text}}} for text in "ab"]
    for selector in selectors(sample, name):
        # one that nobody has looked at, each time
        answer = await api.request("PATCH", path, changes[0], content_type=MERGE)
        assert answer.status == 200, answer.body
        changes.reverse()
        answer = await api.get(f"{collection}?{selector}")
        assert answer.status == 200, answer.body
        assert name in [each["metadata"]["name"] for each in answer.json()["items"]], selector
        if "watch" in sample.resource.verbs:
            answer = await api.request("PATCH", path, changes[0], content_type=MERGE)
            changes.reverse()
            assert (await first_event(api, f"{collection}?watch=1&{selector}"))["type"] == "ADDED"
    whole = (await api.get(path)).json()
    whole["metadata"].setdefault("annotations", {})["change"] = "c"
    answer = await api.request("PUT", path, compact(whole), content_type="application/json")
    assert answer.status == 200, answer.body
    for each in sample.resource.subresources:
        if each.strategy is not None and "get" in each.verbs:
            answer = await api.get(f"{path}/{each.name}")
            assert answer.status == 200, answer.body
            await api.request("PUT", f"{path}/{each.name}", compact(answer.json()), content_type="application/json")
    await api.delete(path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background", "dryRun": ["All"]})
    answer = await api.delete(path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    assert answer.status == 200, answer.body
    await api.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)


APPLY = "application/apply-patch+yaml"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": MANY},
    "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0},
}


async def done(
    api: Any, method: str, target: str, body: Any = None, codes: tuple[int, ...] = (200, 201), **more: str
) -> Any:
    answer = await api.request(method, target, body, **more)
    assert answer.status in codes, (method, target, answer.body)
    return answer.json() if answer.body else None


async def test_views_of_large_objects(api: Any, namespace: str, on_the_loop: list[str]) -> None:
    deployment = {
        "metadata": {"name": "web", "labels": MANY},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await done(api, "POST", path, deployment)
    scale = await done(api, "GET", f"{path}/web/scale")
    await done(api, "GET", f"{path}/web/scale", accept=TABLE)
    await done(api, "PUT", f"{path}/web/scale", {**scale, "spec": {"replicas": 2}})
    await done(api, "PATCH", f"{path}/web/scale", {"spec": {"replicas": 3}}, content_type=MERGE)
    applied = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 4}}
    target = f"{path}/web/scale?fieldManager=me&force=true"
    assert (await done(api, "PATCH", target, applied, content_type=APPLY))["spec"]["replicas"] == 4


async def test_what_is_asked_of_large_pods(api: Any, namespace: str, on_the_loop: list[str]) -> None:
    core = f"/api/v1/namespaces/{namespace}"
    await done(api, "POST", "/api/v1/nodes", {"metadata": {"name": namespace, "labels": MANY}})
    await done(api, "POST", f"{core}/serviceaccounts", {"metadata": {"name": "default", "labels": MANY}})
    await done(api, "POST", f"{core}/pods", POD)
    await done(api, "GET", f"{core}/pods/web/log", codes=(204,))
    binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": namespace}}
    await done(api, "POST", f"{core}/pods/web/binding", binding)
    for what in ("exec", "attach", "portforward", "log", "proxy/"):
        await api.get(f"{core}/pods/web/{what}")
    await api.get(f"/api/v1/nodes/{namespace}/proxy/")
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "web"}
    token = {"spec": {"audiences": None, "boundObjectRef": ref}}
    answer = await done(api, "POST", f"{core}/serviceaccounts/default/token", token)
    bearer = f"Bearer {answer['status']['token']}"
    await done(api, "GET", f"{core}/pods/web", authorization=bearer, codes=(403,))
    await done(api, "POST", f"{core}/pods/web/eviction", {"metadata": {"name": "web"}})
    await api.delete(f"{core}/pods/web", {"gracePeriodSeconds": 0})
    await done(api, "DELETE", f"/api/v1/nodes/{namespace}")


async def test_services_and_their_endpoints(api: Any, namespace: str, on_the_loop: list[str]) -> None:
    core = f"/api/v1/namespaces/{namespace}"
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    service = {"metadata": {"name": "web", "labels": MANY}, "spec": spec}
    cidr = {"metadata": {"name": namespace, "labels": MANY}, "spec": {"cidrs": ["10.9.0.0/24"]}}
    await done(api, "POST", "/apis/networking.k8s.io/v1/servicecidrs", cidr)
    await done(api, "POST", f"{core}/services", service)
    subset = {"addresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 80}]}
    await done(api, "POST", f"{core}/endpoints", {"metadata": {"name": "web", "labels": MANY}, "subsets": [subset]})
    await done(api, "GET", f"{core}/services/web:80/proxy/", codes=(503,))
    for name in ("b", "c"):
        await done(api, "POST", f"{core}/services", {"metadata": {"name": name}, "spec": spec})
    upkeep = api.plane.part(MaintainedObjects).upkeep
    await upkeep.restore_all()
    await upkeep.addresses.run()
    await done(api, "DELETE", f"{core}/services/web")
    await done(api, "DELETE", f"/apis/networking.k8s.io/v1/servicecidrs/{namespace}")


async def test_what_admission_reads(api: Any, on_the_loop: list[str]) -> None:
    """A namespace, its limits, quotas and service accounts, and all kinds of classes, all of them large."""
    name = "large-admission"
    core = f"/api/v1/namespaces/{name}"
    metadata = {"name": name, "labels": MANY}
    limits = [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]
    limits += [{"type": f"example.com/{number}", "max": {"cpu": "1"}} for number in range(1_000)]
    hard = {f"count/things-{number}.example.com": "1" for number in range(2_000)} | {"pods": "2", "requests.cpu": "3"}
    annotations = {
        "storageclass.kubernetes.io/is-default-class": "true",
        "ingressclass.kubernetes.io/is-default-class": "true",
    }
    classes: dict[str, dict[str, Any]] = {
        "/apis/scheduling.k8s.io/v1/priorityclasses": {"value": 7},
        "/apis/node.k8s.io/v1/runtimeclasses": {"handler": "h", "overhead": {"podFixed": {"cpu": "1m"}}},
        "/apis/storage.k8s.io/v1/storageclasses": {"provisioner": "p", "allowVolumeExpansion": True},
        "/apis/networking.k8s.io/v1/ingressclasses": {"spec": {"controller": "example.com/c"}},
        "/apis/resource.k8s.io/v1/deviceclasses": {"spec": {"extendedResourceName": "example.com/d"}},
    }
    await done(api, "POST", "/api/v1/namespaces", {"metadata": metadata})
    for path, body in classes.items():
        await done(api, "POST", path, {"metadata": {**metadata, "annotations": annotations}, **body})
    await done(api, "POST", f"{core}/serviceaccounts", {"metadata": {"name": "default", "labels": MANY}})
    await done(api, "POST", f"{core}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    await done(api, "POST", f"{core}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    quota = await done(api, "GET", f"{core}/resourcequotas/q")
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    await done(api, "PUT", f"{core}/resourcequotas/q/status", {**quota, "status": status})
    pod = {
        "metadata": {"name": "p"},
        "spec": {"priorityClassName": name, "runtimeClassName": name, "containers": [{"name": "c", "image": "i"}]},
    }
    made = await done(api, "POST", f"{core}/pods", pod)
    assert (made["spec"]["priority"], made["spec"]["overhead"]) == (7, {"cpu": "1m"})
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    used = (await done(api, "GET", f"{core}/resourcequotas/q"))["status"]["used"]
    assert (used["pods"], used["requests.cpu"]) == ("1", "1001m")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = await done(api, "POST", f"{core}/persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec})
    assert claim["spec"]["storageClassName"] == name
    bound = {**claim, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    claim = await done(api, "PUT", f"{core}/persistentvolumeclaims/c/status", bound)
    spec = {**claim["spec"], "resources": {"requests": {"storage": "2Gi"}}, "volumeName": "v"}
    await api.request("PUT", f"{core}/persistentvolumeclaims/c", {**claim, "spec": spec})
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    path = f"/apis/networking.k8s.io/v1/namespaces/{name}/ingresses"
    ingress = await done(api, "POST", path, {"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}})
    assert ingress["spec"]["ingressClassName"] == name
    requests = [{"name": "r", "exactly": {"deviceClassName": name, "adminAccess": True}}]
    claim = {"metadata": {"name": "d"}, "spec": {"devices": {"requests": requests}}}
    await done(api, "POST", f"/apis/resource.k8s.io/v1/namespaces/{name}/resourceclaims", claim, codes=(422,))
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    await done(api, "POST", f"{core}/pods", {**POD, "metadata": {"name": "large", "labels": MANY}})
    await done(api, "PATCH", f"/api/v1/namespaces/{name}", labels, content_type=MERGE)
    await done(api, "POST", f"{core}/pods", {**pod, "metadata": {"name": "q"}}, codes=(403,))
    await done(api, "DELETE", f"{core}/pods?propagationPolicy=Background")
    for path in classes:
        await done(api, "DELETE", f"{path}/{name}")
    await api.delete(f"/api/v1/namespaces/{name}")
