"""Controller of aggregated ClusterRoles: it copies the rules of the selected roles
(pkg/controller/clusterroleaggregation).
"""

from __future__ import annotations

from typing import Final

from steersman.api.rbac.v1 import ClusterRole, PolicyRule
from steersman.client.resources import CLUSTER_ROLES
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.selectors.labels import from_label_selector

_MANAGER: Final = "clusterrole-aggregation-controller"


class ClusterRoleAggregationController(Controller[str]):
    """Sets the rules of aggregated ClusterRoles. A key is the name of a ClusterRole with an aggregation rule."""

    name = "clusterrole-aggregation-controller"
    account = "clusterrole-aggregation-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._roles = self.informers.for_resource(CLUSTER_ROLES)
        self._aggregating: set[str] = set()
        self._roles.on_change(self._changed)

    def _changed(self, old: ClusterRole | None, new: ClusterRole | None) -> None:
        if new is not None and new.aggregation_rule is not None:
            self._aggregating.add(new.metadata.name)
        elif old is not None or new is not None:
            self._aggregating.discard((new or old).metadata.name)  # type: ignore[union-attr]
        same = old is not None and new is not None and old.rules == new.rules
        if same and old is not None and new is not None and old.metadata.labels == new.metadata.labels:
            if new.aggregation_rule is not None:
                self.queue.add(new.metadata.name)
            return
        for name in self._aggregating:
            self.queue.add(name)

    async def sync(self, key: str) -> None:
        role = self._roles.get("", key)
        if role is None or role.aggregation_rule is None:
            return
        rules = self._aggregated(role)
        if rules == (role.rules or []):
            return
        configuration = {
            "apiVersion": CLUSTER_ROLES.api_version,
            "kind": CLUSTER_ROLES.kind,
            "metadata": {"name": key},
            "rules": [to_plain(each) for each in rules],
        }
        await self.client.apply(CLUSTER_ROLES, key, "", configuration, manager=_MANAGER)

    def _aggregated(self, role: ClusterRole) -> list[PolicyRule]:
        """Return the rules of all roles that the selectors select, in the order of the roles' names, without
        duplicates.
        """
        rules: list[PolicyRule] = []
        seen: set[str] = set()
        assert role.aggregation_rule is not None
        others = sorted(self._roles.list(), key=lambda each: each.metadata.name)
        for selector in role.aggregation_rule.cluster_role_selectors:
            matches = from_label_selector(selector).matches
            for other in others:
                if other.metadata.name == role.metadata.name or not matches(other.metadata.labels):
                    continue
                for rule in other.rules or []:
                    text = repr(rule)
                    if text not in seen:
                        seen.add(text)
                        rules.append(rule)
        return rules
