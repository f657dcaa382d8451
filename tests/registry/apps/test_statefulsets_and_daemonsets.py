"""StatefulSets, DaemonSets and the revisions of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from steersman.registry.apps.controllerrevisions import CONTROLLER_REVISIONS
from steersman.registry.apps.daemonsets import DAEMON_SETS, TEMPLATE_GENERATION
from steersman.registry.apps.statefulsets import STATEFUL_SETS

Cluster = Callable[..., Any]


def workload(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    return {
        "metadata": {"name": "w"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec},
    }


CLAIM: dict[str, Any] = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}


async def test_a_stateful_set_keeps_volumes_and_goes_in_order_by_default(cluster: Cluster) -> None:
    c = await cluster(STATEFUL_SETS)
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    spec = (await c.create("statefulsets", workload(volumeClaimTemplates=[claim]), group="apps"))["spec"]
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    template = spec["volumeClaimTemplates"][0]
    assert (template["kind"], template["spec"]["volumeMode"], template["status"]) == (
        "PersistentVolumeClaim",
        "Filesystem",
        {"phase": "Pending"},
    )


async def test_a_claim_template_is_checked_when_the_set_is_made(cluster: Cluster) -> None:
    c = await cluster(STATEFUL_SETS)
    assert await c.faults(c.create("statefulsets", workload(volumeClaimTemplates=[CLAIM]), group="apps")) == [
        "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"
    ]


async def test_most_of_a_stateful_set_is_fixed(cluster: Cluster) -> None:
    c = await cluster(STATEFUL_SETS)
    await c.create("statefulsets", workload(serviceName="s"), group="apps")
    changed = await c.change("statefulsets", "w", group="apps", replicas=3, minReadySeconds=1, ordinals={"start": 1})
    assert changed["metadata"]["generation"] == 2
    changed["spec"]["serviceName"] = "t"
    (fault,) = await c.faults(c.update("statefulsets", changed, group="apps"))
    assert fault.startswith("spec: Forbidden: updates to statefulset spec for fields other than 'replicas',")


async def test_mounts_of_claim_templates_need_no_volume(cluster: Cluster) -> None:
    c = await cluster(STATEFUL_SETS)
    claim = {**CLAIM, "spec": {**CLAIM["spec"], "resources": {"requests": {"storage": "1"}}}}
    body = workload(volumeClaimTemplates=[claim])
    body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/d"}]
    assert "volumes" not in (await c.create("statefulsets", body, group="apps"))["spec"]["template"]["spec"]


async def test_a_daemon_set_counts_its_templates_in_an_annotation(cluster: Cluster) -> None:
    c = await cluster(DAEMON_SETS)
    made = await c.create("daemonsets", workload(), group="apps")
    assert made["metadata"]["annotations"] == {TEMPLATE_GENERATION: "1"}
    made["spec"]["minReadySeconds"] = 5
    made = await c.update("daemonsets", made, group="apps")
    assert (made["metadata"]["generation"], made["metadata"]["annotations"]) == (2, {TEMPLATE_GENERATION: "1"})
    made["spec"]["template"]["spec"]["containers"][0]["image"] = "two"
    made["metadata"]["annotations"] = {TEMPLATE_GENERATION: "77"}
    made = await c.update("daemonsets", made, group="apps")
    assert (made["metadata"]["generation"], made["metadata"]["annotations"]) == (3, {TEMPLATE_GENERATION: "2"})
    made["metadata"]["annotations"] = {}
    made["status"] = {
        "numberReady": 1,
        "currentNumberScheduled": 1,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 1,
    }
    made = await c.update("daemonsets", made, group="apps", subresource="status")
    assert made["metadata"]["annotations"] == {TEMPLATE_GENERATION: "2"}


async def test_a_daemon_set_surges_or_goes_without_but_not_both_nor_neither(cluster: Cluster) -> None:
    c = await cluster(DAEMON_SETS)
    rolling = {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}
    assert await c.faults(c.create("daemonsets", workload(**rolling), group="apps")) == [
        "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"
    ]
    rolling = {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}
    assert await c.faults(c.create("daemonsets", workload(**rolling), group="apps")) == [
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"
    ]


async def test_a_revision_needs_an_object_and_never_changes(cluster: Cluster) -> None:
    c = await cluster(CONTROLLER_REVISIONS)
    body = {"metadata": {"name": "r"}, "revision": 1, "data": Raw(b"[]")}
    assert await c.faults(c.create("controllerrevisions", body, group="apps")) == [
        "data: Required value: data must be a valid JSON object"
    ]
    body["data"] = Raw(b'{"a": "b"}')
    made = await c.create("controllerrevisions", body, group="apps")
    assert await c.faults(c.update("controllerrevisions", {**made, "data": Raw(b'{"a": "c"}')}, group="apps")) == [
        'data: Invalid value: {"a":"c"}: field is immutable'
    ]


async def test_an_update_strategy_nobody_knows_is_shown_whole(cluster: Cluster) -> None:
    c = await cluster(DAEMON_SETS, STATEFUL_SETS)
    strategy = {"updateStrategy": {"type": "New", "rollingUpdate": {"maxUnavailable": 2}}}
    assert await c.faults(c.create("statefulsets", workload(**strategy), group="apps")) == [
        'spec.updateStrategy: Invalid value: {"Type":"New","RollingUpdate":{"Partition":0,"MaxUnavailable":null}}: '
        "must be 'RollingUpdate' or 'OnDelete'"
    ]
    assert await c.faults(c.create("daemonsets", workload(**strategy), group="apps")) == [
        'spec.updateStrategy: Unsupported value: {"Type":"New","RollingUpdate":{"MaxUnavailable":2,"MaxSurge":0}}: '
        'supported values: "RollingUpdate", "OnDelete"'
    ]


async def test_claims_of_fractions_of_a_byte_are_warned_of(cluster: Cluster) -> None:
    c = await cluster(STATEFUL_SETS)
    claim = {
        "metadata": {"name": "d"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}},
    }
    text = 'resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer'
    told: list[str] = []
    made = await c.create("statefulsets", workload(volumeClaimTemplates=[claim]), group="apps", warnings=told)
    assert f"spec.volumeClaimTemplates[0].{text}" in told
    told.clear()
    made["spec"]["replicas"] = 3
    await c.update("statefulsets", made, group="apps", warnings=told)
    assert f"spec.volumeClaimTemplates[0].Spec.{text}" in told
