"""Tests of quota evaluators."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import CREATE, UPDATE, Attributes, Operation
from steersman.admission_plugins.quota.evaluators import Evaluator, ServiceEvaluator, VolumeClaimEvaluator
from steersman.admission_plugins.quota.pods import PodEvaluator
from steersman.admission_plugins.quota.resource_claims import ResourceClaimEvaluator
from steersman.api.core.v1 import PersistentVolumeClaim, Pod, ScopedResourceSelectorRequirement, Service
from steersman.api.resource.v1 import DeviceClass, ResourceClaim
from steersman.authentication.user import UserInfo
from steersman.machinery.built_in.quota.measure import counting
from steersman.machinery.built_in.quota.resource_claims import EXTENDED_CLAIM
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind
from steersman.machinery.selectors.labels import SelectorError
from steersman.rest.objects import Reading

Plain = dict[str, Any]


class StoredObjects:
    """Stored objects, as the server passes them to plugins."""

    def __init__(self, *objects: Any) -> None:
        self.objects = objects

    async def get_cached(self, namespace: str, name: str) -> Any | None:
        return next((each for each in self.objects if each.metadata.name == name), None)

    def read_all_cached(self, namespace: str, reading: Reading[Any]) -> list[Any]:
        return [reading.make(each) for each in self.objects]

    async def read_all(self, namespace: str, reading: Reading[Any]) -> list[Any]:
        return self.read_all_cached(namespace, reading)

    def change_count(self) -> int:
        return 1


def pod(*resources: Plain, status: Plain | None = None, **spec: Any) -> Pod:
    containers = [{"name": f"c{number}", "resources": each} for number, each in enumerate(resources)]
    plain = {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}, "status": status or {}}
    return from_plain(Pod, plain)


def make_attributes(operation: Operation, subresource: str = "", obj: Any = None, old: Any = None) -> Attributes:
    action = Action(operation.lower(), "", "v1", "things", subresource, "ns", "p")
    return Attributes(operation, UserInfo("alice"), action, GroupVersionKind("", "v1", "Thing"), "p", obj, old)


def scope_requirement(name: str, operator: str = "Exists", *values: str) -> ScopedResourceSelectorRequirement:
    return ScopedResourceSelectorRequirement(scope_name=name, operator=operator, values=list(values))


async def usage_texts(evaluator: Evaluator, obj: Any) -> dict[str, str]:
    return {name: str(amount) for name, amount in (await evaluator.usage(obj, "ns")).items()}


# Counts


async def test_any_resource_is_counted_when_it_is_made() -> None:
    evaluator = Evaluator(counting(GroupResource("apps", "deployments")))
    assert await usage_texts(evaluator, None) == {"count/deployments.apps": "1"}
    assert evaluator.handles(make_attributes(CREATE))
    assert not evaluator.handles(make_attributes(UPDATE))
    assert not evaluator.handles(make_attributes(CREATE, "scale"))


async def test_old_names_count_too() -> None:
    evaluator = Evaluator(counting(GroupResource("", "secrets")))
    assert evaluator.matching(["count/secrets", "secrets", "configmaps"]) == {"count/secrets", "secrets"}
    assert await usage_texts(evaluator, None) == {"count/secrets": "1", "secrets": "1"}


# Pods


PODS = PodEvaluator()
CPU: Plain = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}


async def test_a_pod_uses_what_its_containers_ask_for() -> None:
    resources = {
        "requests": {"cpu": "100m", "memory": "1Gi", "hugepages-2Mi": "2Mi", "example.com/gpu": "1"},
        "limits": {"cpu": "1", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi", "example.com/gpu": "1"},
    }
    assert await usage_texts(PODS, pod(resources, CPU)) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1100m",
        "requests.cpu": "1100m",
        "memory": "1Gi",
        "requests.memory": "1Gi",
        "limits.cpu": "3",
        "limits.ephemeral-storage": "1Gi",
        "hugepages-2Mi": "2Mi",
        "requests.hugepages-2Mi": "2Mi",
        "requests.example.com/gpu": "1",
    }


@pytest.mark.parametrize(
    ("more", "cpu"),
    [
        ({}, "1"),
        ({"overhead": {"cpu": "250m"}}, "1250m"),
        ({"resources": {"requests": {"cpu": "5"}}}, "5"),
        ({"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]}, "3"),
        ({"initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "3"}}}]}, "4"),
    ],
)
async def test_what_the_pod_as_a_whole_asks_for(more: Plain, cpu: str) -> None:
    assert (await usage_texts(PODS, pod(CPU, **more)))["requests.cpu"] == cpu


@pytest.mark.parametrize(
    ("condition", "cpu", "limit"), [([], "3", "4"), ([{"type": "PodResizePending", "reason": "Infeasible"}], "2", "1")]
)
async def test_what_a_container_was_given_counts_while_it_is_resized(
    condition: list[Plain], cpu: str, limit: str
) -> None:
    given = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    status = {
        "conditions": condition,
        "containerStatuses": [{"name": "c0", "resources": given, "allocatedResources": {"cpu": "2"}}],
    }
    usage = await usage_texts(PODS, pod({"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}, status=status))
    assert (usage["requests.cpu"], usage["limits.cpu"]) == (cpu, limit)


async def test_a_pod_that_has_ended_is_only_an_object() -> None:
    assert await usage_texts(PODS, pod(CPU, status={"phase": "Succeeded"})) == {"count/pods": "1"}
    going = pod(CPU)
    going.metadata.deletion_timestamp = "2020-01-01T00:00:00Z"
    assert "pods" in await usage_texts(PODS, going)
    for seconds in (30, 2**63 - 1):
        going.metadata.deletion_grace_period_seconds = seconds
        assert await usage_texts(PODS, going) == {"count/pods": "1"}


def test_every_container_must_say_what_is_limited() -> None:
    told = PODS.constraint_error({"requests.cpu", "limits.memory", "pods"}, pod({}, CPU))
    assert told == "must specify limits.memory for: c0,c1; requests.cpu for: c0"
    assert PODS.constraint_error({"ephemeral-storage", "requests.example.com/gpu"}, pod({})) == ""
    assert PODS.constraint_error({"requests.cpu"}, pod({}, resources={"requests": {"memory": "1"}})) == ""


@pytest.mark.parametrize(
    ("selector", "given", "inside"),
    [
        (scope_requirement("Terminating"), {"activeDeadlineSeconds": 1}, True),
        (scope_requirement("NotTerminating"), {"activeDeadlineSeconds": 1}, False),
        (scope_requirement("NotTerminating"), {}, True),
        (scope_requirement("BestEffort"), {}, False),
        (scope_requirement("NotBestEffort"), {}, True),
        (scope_requirement("PriorityClass"), {}, False),
        (scope_requirement("PriorityClass"), {"priorityClassName": "high"}, True),
        (scope_requirement("PriorityClass", "In", "low", "high"), {"priorityClassName": "high"}, True),
        (scope_requirement("PriorityClass", "NotIn", "high"), {"priorityClassName": "high"}, False),
        (scope_requirement("PriorityClass", "NotIn", "high"), {}, True),
        (scope_requirement("PriorityClass", "DoesNotExist"), {}, True),
        (scope_requirement("CrossNamespacePodAffinity"), {}, False),
        (scope_requirement("VolumeAttributesClass"), {}, False),
    ],
)
def test_scopes_of_pods(selector: ScopedResourceSelectorRequirement, given: Plain, inside: bool) -> None:
    assert PODS.in_scope(selector, pod(CPU, **given)) is inside


@pytest.mark.parametrize(
    ("term", "inside"), [({}, False), ({"namespaces": ["other"]}, True), ({"namespaceSelector": {}}, True)]
)
def test_affinity_to_pods_of_other_namespaces_is_a_scope(term: Plain, inside: bool) -> None:
    near = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "k", **term}]}
    rather = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "k", **term}}
        ]
    }
    for affinity in ({"podAffinity": near}, {"podAntiAffinity": rather}):
        assert PODS.in_scope(scope_requirement("CrossNamespacePodAffinity"), pod(CPU, affinity=affinity)) is inside


def test_a_selector_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(SelectorError):
        PODS.in_scope(scope_requirement("PriorityClass", "In", "not a label"), pod(CPU))


def test_pods_are_charged_when_made_resized_or_given_a_deadline() -> None:
    plain, ending = pod(CPU), pod(CPU, activeDeadlineSeconds=1)
    assert PODS.handles(make_attributes(CREATE, obj=plain))
    assert PODS.handles(make_attributes(UPDATE, "resize", plain, plain))
    assert PODS.handles(make_attributes(UPDATE, "", ending, plain))
    assert not PODS.handles(make_attributes(UPDATE, "", plain, plain))
    assert not PODS.handles(make_attributes(UPDATE, "status", ending, plain))


# Services


@pytest.mark.parametrize(
    ("spec", "node_ports", "load_balancers"),
    [
        ({"type": "ClusterIP"}, "0", "0"),
        ({"type": "NodePort"}, "2", "0"),
        ({"type": "LoadBalancer"}, "2", "1"),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, "1", "1"),
    ],
)
async def test_services_by_their_type(spec: Plain, node_ports: str, load_balancers: str) -> None:
    service = from_plain(Service, {"spec": {"ports": [{"port": 1}, {"port": 2, "nodePort": 30000}], **spec}})
    assert await usage_texts(ServiceEvaluator(), service) == {
        "services": "1",
        "count/services": "1",
        "services.nodeports": node_ports,
        "services.loadbalancers": load_balancers,
    }


# Claims


def claim(
    storage: str, status: Plain | None = None, annotations: Plain | None = None, **spec: Any
) -> PersistentVolumeClaim:
    resources = {"requests": {"storage": storage}}
    metadata = {"name": "c", "annotations": annotations or {}}
    plain = {"metadata": metadata, "spec": {"resources": resources, **spec}, "status": status or {}}
    return from_plain(PersistentVolumeClaim, plain)


async def test_claims_by_their_storage_class() -> None:
    assert await usage_texts(VolumeClaimEvaluator(), claim("2500m", storageClassName="gold")) == {
        "persistentvolumeclaims": "1",
        "count/persistentvolumeclaims": "1",
        "requests.storage": "3",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "3",
    }
    old = {"volume.beta.kubernetes.io/storage-class": "iron"}
    usage = await usage_texts(VolumeClaimEvaluator(), claim("1", annotations=old, storageClassName="gold"))
    assert usage["iron.storageclass.storage.k8s.io/requests.storage"] == "1"


async def test_what_is_allocated_beyond_the_request_counts() -> None:
    for allocated, storage in (("2Gi", "2Gi"), ("1", "1Gi")):
        usage = await usage_texts(VolumeClaimEvaluator(), claim("1Gi", {"allocatedResources": {"storage": allocated}}))
        assert usage["requests.storage"] == storage


def test_volume_attributes_classes_are_a_scope() -> None:
    inside = VolumeClaimEvaluator().in_scope
    changing = claim("1", {"currentVolumeAttributesClassName": "slow"}, volumeAttributesClassName="fast")
    for name in ("slow", "fast"):
        assert inside(scope_requirement("VolumeAttributesClass", "In", name), changing)
    assert inside(scope_requirement("VolumeAttributesClass"), changing)
    assert not inside(scope_requirement("VolumeAttributesClass"), claim("1"))
    assert inside(scope_requirement("VolumeAttributesClass", "NotIn", "fast"), claim("1"))
    assert not inside(scope_requirement("PriorityClass"), changing)


# Resource claims


def device_class(name: str, extended: str | None = None) -> DeviceClass:
    return from_plain(DeviceClass, {"metadata": {"name": name}, "spec": {"extendedResourceName": extended}})


def devices(name: str, *requests: Plain, owner: str = "", created: str = "2026-01-01T00:00:00Z") -> ResourceClaim:
    metadata: Plain = {"name": name, "creationTimestamp": created}
    if owner:
        metadata["annotations"] = {EXTENDED_CLAIM: "true"}
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    return from_plain(ResourceClaim, {"metadata": metadata, "spec": {"devices": {"requests": list(requests)}}})


def device_request(device: str, count: int = 0) -> Plain:
    mode = {"allocationMode": "ExactCount", "count": count} if count else {"allocationMode": "All"}
    return {"name": "r", "exactly": {"deviceClassName": device, **mode}}


def claims(pods: StoredObjects, *others: ResourceClaim) -> ResourceClaimEvaluator:
    classes = StoredObjects(device_class("gold", "example.com/gold"), device_class("tin"))
    return ResourceClaimEvaluator(classes, pods, StoredObjects(*others))  # type: ignore[arg-type]


async def test_devices_are_counted_by_class_and_extended_resource() -> None:
    alternatives = [
        {"name": str(number), "deviceClassName": name, "allocationMode": "ExactCount", "count": number}
        for number, name in ((1, "tin"), (3, "tin"), (2, "gold"))
    ]
    wanted = devices(
        "a", device_request("gold", 2), {"name": "f", "firstAvailable": alternatives}, device_request("other")
    )
    assert await usage_texts(claims(StoredObjects()), wanted) == {
        "count/resourceclaims.resource.k8s.io": "1",
        "gold.deviceclass.resource.k8s.io/devices": "4",
        "tin.deviceclass.resource.k8s.io/devices": "3",
        "other.deviceclass.resource.k8s.io/devices": "32",
        "requests.deviceclass.resource.kubernetes.io/gold": "4",
        "requests.deviceclass.resource.kubernetes.io/tin": "3",
        "requests.deviceclass.resource.kubernetes.io/other": "32",
        "requests.example.com/gold": "4",
    }


def test_extended_resources_of_device_classes_are_limited_for_claims_too() -> None:
    known = {
        "requests.example.com/gold",
        "requests.deviceclass.resource.kubernetes.io/tin",
        "x.deviceclass.resource.k8s.io/devices",
    }
    unknown = {"requests.example.com/lead", "requests.deviceclass.resource.kubernetes.io/lead", "requests.cpu"}
    assert claims(StoredObjects()).matching(known | unknown) == known


async def test_what_the_pod_was_charged_for_is_not_charged_to_its_first_claim_again() -> None:
    owner = pod({"requests": {"example.com/gold": "2"}})
    owner.metadata.uid = "u"
    first = devices("a", device_request("gold", 3), owner="u")
    for others, rest in (((), "1"), ((devices("b", owner="u"),), "1"), ((devices("0", owner="u"),), "3")):
        assert (await usage_texts(claims(StoredObjects(owner), *others), first))["requests.example.com/gold"] == rest
    owner.status = from_plain(
        Pod, {"status": {"extendedResourceClaimStatus": {"requestMappings": [], "resourceClaimName": "b"}}}
    ).status
    assert (await usage_texts(claims(StoredObjects(owner)), first))["requests.example.com/gold"] == "3"
    other = devices("a", device_request("gold", 3), owner="another pod of that name")
    assert (await usage_texts(claims(StoredObjects(owner)), other))["requests.example.com/gold"] == "3"
