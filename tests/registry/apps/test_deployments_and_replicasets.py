"""Deployments and ReplicaSets: defaults, generations, selectors, status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.apps.v1 import Deployment
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.apps.deployments import DEPLOYMENTS
from steersman.registry.apps.replicasets import REPLICA_SETS

Cluster = Callable[..., Any]
MISMATCH = "`selector` does not match template `labels`"


def workload(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    return {
        "metadata": {"name": "w"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec},
    }


async def test_a_deployment_rolls_by_quarters_unless_it_says_otherwise(cluster: Cluster) -> None:
    c = await cluster(DEPLOYMENTS)
    made = await c.create("deployments", {**workload(), "status": {"replicas": 7}}, group="apps")
    assert made["metadata"]["generation"] == 1
    assert made["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert (made["spec"]["replicas"], made["spec"]["progressDeadlineSeconds"]) == (1, 600)
    assert made["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert made["status"] == {}


async def test_spec_and_annotations_count_as_a_new_generation_but_labels_do_not(cluster: Cluster) -> None:
    c = await cluster(DEPLOYMENTS)
    made = await c.create("deployments", workload(), group="apps")
    assert (await c.change("deployments", "w", group="apps", replicas=3))["metadata"]["generation"] == 2
    made = await c.get("deployments", "w", group="apps")
    made["metadata"]["annotations"] = {"a": "b"}
    made = await c.update("deployments", made, group="apps")
    assert made["metadata"]["generation"] == 3
    made["metadata"]["labels"] = {"a": "b"}
    assert (await c.update("deployments", made, group="apps"))["metadata"]["generation"] == 3


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        (
            {"selector": {"matchLabels": {"app": "z"}}},
            [f'spec.template.metadata.labels: Invalid value: {{"app":"a"}}: {MISMATCH}'],
        ),
        ({"selector": {}}, ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]),
        (
            {"strategy": {"type": "Odd"}},
            [
                'spec.strategy: Unsupported value: {"Type":"Odd","RollingUpdate":null}: '
                'supported values: "Recreate", "RollingUpdate"'
            ],
        ),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": 0}}},
            ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
        ),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}},
            ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
        ),
        (
            {"minReadySeconds": 600, "progressDeadlineSeconds": 600},
            ["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"],
        ),
    ],
)
async def test_a_deployment_is_refused_in_the_words_of_the_reference(
    cluster: Cluster, spec: dict[str, Any], faults: list[str]
) -> None:
    c = await cluster(DEPLOYMENTS)
    assert await c.faults(c.create("deployments", workload(**spec), group="apps")) == faults


async def test_pods_of_a_deployment_always_run(cluster: Cluster) -> None:
    c = await cluster(DEPLOYMENTS)
    body = workload()
    body["spec"]["template"]["spec"] |= {"restartPolicy": "Never", "activeDeadlineSeconds": 5}
    assert await c.faults(c.create("deployments", body, group="apps")) == [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
    ]


@pytest.mark.parametrize(("resource", "plural"), [(DEPLOYMENTS, "deployments"), (REPLICA_SETS, "replicasets")])
async def test_a_selector_cannot_be_changed(cluster: Cluster, resource: Any, plural: str) -> None:
    c = await cluster(resource)
    body = await c.create(plural, workload(), group="apps")
    body["spec"]["selector"] = {"matchLabels": {"app": "b"}}
    body["spec"]["template"]["metadata"]["labels"] = {"app": "b"}
    assert await c.faults(c.update(plural, body, group="apps")) == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable'
    ]


async def test_status_takes_neither_spec_nor_more_ready_than_there_are(cluster: Cluster) -> None:
    c = await cluster(DEPLOYMENTS)
    body = await c.create("deployments", workload(), group="apps")
    body["spec"]["replicas"] = 9
    body["status"] = {"replicas": 1, "readyReplicas": 1}
    written = await c.update("deployments", body, group="apps", subresource="status")
    assert (written["spec"]["replicas"], written["status"]["readyReplicas"]) == (1, 1)
    written["status"]["readyReplicas"] = 2
    assert await c.faults(c.update("deployments", written, group="apps", subresource="status")) == [
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"
    ]


async def test_counters_of_a_replica_set_are_checked_in_the_order_of_the_reference(cluster: Cluster) -> None:
    c = await cluster(REPLICA_SETS)
    body = await c.create("replicasets", workload(), group="apps")
    body["status"] = {"replicas": 1, "fullyLabeledReplicas": 4, "readyReplicas": 3, "availableReplicas": 2}
    assert await c.faults(c.update("replicasets", body, group="apps", subresource="status")) == [
        "status.fullyLabeledReplicas: Invalid value: 4: cannot be greater than status.replicas",
        "status.readyReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas",
    ]


def test_a_deployment_shows_containers_images_and_selector() -> None:
    deployment = from_plain(Deployment, workload(replicas=2))
    cells = {column.name: column.cell(deployment) for column in DEPLOYMENTS.columns if column.cell}
    assert cells == {
        "Ready": "0/2",
        "Up-to-date": 0,
        "Available": 0,
        "Containers": "c",
        "Images": "nginx",
        "Selector": "app=a",
    }
