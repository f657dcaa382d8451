"""Controller of ReplicationControllers: it keeps the desired number of pods (pkg/controller/replication)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.core.v1 import ReplicationController, ReplicationControllerCondition
from steersman.api.meta.v1 import LabelSelector
from steersman.client.resources import REPLICATION_CONTROLLERS
from steersman.controllers.replica_set import ReplicasController
from steersman.controllers.workloads.selectors import compile_selector
from steersman.machinery.selectors.labels import Selector, selector_from_set


class ReplicationControllerController(ReplicasController[ReplicationController]):
    """Keeps the desired number of pods. A key is the namespace and name of a ReplicationController."""

    name = "replicationcontroller-controller"
    account = "replication-controller"
    resource = REPLICATION_CONTROLLERS

    def selector(self, owner: ReplicationController) -> Selector:
        return selector_from_set(owner.spec.selector)

    async def compile_selector(self, owner: ReplicationController) -> Selector:
        return await compile_selector(LabelSelector(match_labels=owner.spec.selector))

    def may_select(self, owner: ReplicationController, labels: Mapping[str, str]) -> bool:
        return bool(owner.spec.selector) and owner.spec.selector.items() <= labels.items()

    def condition(self, **members: str) -> ReplicationControllerCondition:
        return ReplicationControllerCondition(**members)

    def with_status(self, owner: ReplicationController, status: dict[str, Any]) -> ReplicationController:
        own = {name: value for name, value in status.items() if name != "terminating_replicas"}
        return super().with_status(owner, own)
