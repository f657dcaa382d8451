"""Tests that work on large pod templates is offloaded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from steersman.api.apps.v1 import DaemonSet, DaemonSetSpec, Deployment, DeploymentSpec, StatefulSet, StatefulSetSpec
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.client.api_resource import APIResource
from steersman.client.resources import CONTROLLER_REVISIONS, DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS
from steersman.controllers.controller import Controller
from steersman.controllers.daemon_set import history as daemon_sets
from steersman.controllers.daemon_set.controller import DaemonSetController
from steersman.controllers.deployment import replica_sets as deployments
from steersman.controllers.deployment.controller import DeploymentController
from steersman.controllers.stateful_set import history as stateful_sets
from steersman.controllers.stateful_set.controller import StatefulSetController
from tests.controllers.kubelet import LABELS, template
from tests.controllers.waiting import Run, eventually


@pytest.mark.parametrize(("length", "beside"), [(10, False), (100_000, True)])
@pytest.mark.parametrize(
    ("controller", "resource", "kind", "spec", "module", "functions", "made"),
    [
        (DeploymentController, DEPLOYMENTS, Deployment, DeploymentSpec, deployments, ("template_hash",), REPLICA_SETS),
        (
            DaemonSetController,
            DAEMON_SETS,
            DaemonSet,
            DaemonSetSpec,
            daemon_sets,
            ("template_hash", "equal_revisions"),
            CONTROLLER_REVISIONS,
        ),
        (
            StatefulSetController,
            STATEFUL_SETS,
            StatefulSet,
            StatefulSetSpec,
            stateful_sets,
            ("revision_hash", "equal_revisions"),
            CONTROLLER_REVISIONS,
        ),
    ],
)
async def test_what_takes_long_with_a_large_template_is_done_in_a_thread(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    controller: type[Controller[Any]],
    resource: APIResource[Any],
    kind: Any,
    spec: Any,
    module: ModuleType,
    functions: tuple[str, ...],
    made: APIResource[Any],
    length: int,
    *,
    beside: bool,
) -> None:
    done: set[tuple[str, bool]] = set()

    def noted(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any) -> Any:
            done.add((name, threading.current_thread() is not threading.main_thread()))
            return work(*args)

        return noting

    for name in functions:
        monkeypatch.setattr(module, name, noted(name, getattr(module, name)))
    client = await run(controller)
    given = template()
    given.metadata.annotations = {"a": "x" * length}
    metadata = ObjectMeta(name="web", namespace="default")
    described = spec(selector=LabelSelector(match_labels=LABELS), template=given)
    await client.create(resource, kind(metadata=metadata, spec=described))

    async def is_made() -> bool:
        return bool((await client.list(made, "default")).items)

    await eventually(is_made)
    assert done == {(name, beside) for name in functions}
