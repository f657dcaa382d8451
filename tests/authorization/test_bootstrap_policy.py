"""Default roles and bindings, and reconciliation of stored ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.api.rbac.v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.bootstrap_policy import load_bootstrap_policy
from steersman.authorization.rbac import RbacAuthorizer
from steersman.authorization.rbac_bindings import Binding, RoleRules
from steersman.authorization.reconcile import AUTOUPDATE, Operation, reconcile_binding, reconcile_role
from steersman.machinery.identity.action import Action


@pytest.fixture(scope="module")
def authorizer() -> Any:
    policy, rbac = load_bootstrap_policy(), RbacAuthorizer()
    roles: tuple[ClusterRole | Role, ...] = (*policy.cluster_roles, *policy.roles)
    for role in roles:
        rbac.put_role(role.metadata.namespace, role.metadata.name, RoleRules(role.rules or ()))
    bindings: tuple[ClusterRoleBinding | RoleBinding, ...] = (*policy.cluster_role_bindings, *policy.role_bindings)
    for binding in bindings:
        namespace, name = binding.metadata.namespace, binding.metadata.name
        rbac.put_binding(namespace, name, Binding(namespace, name, binding.role_ref, binding.subjects))
    return rbac


def test_objects_are_complete_and_fresh_each_time() -> None:
    policy = load_bootstrap_policy()
    counts = (policy.cluster_roles, policy.cluster_role_bindings, policy.roles, policy.role_bindings)
    assert [len(each) for each in counts] == [69, 50, 7, 7]
    by_name = {role.metadata.name: role for role in policy.cluster_roles}
    assert by_name["admin"].rules is None
    assert by_name["admin"].aggregation_rule is not None
    assert msgspec.json.decode(msgspec.json.encode(by_name["view"]))["kind"] == "ClusterRole"
    assert {binding.kind for binding in policy.role_bindings} == {"RoleBinding"}
    by_name["view"].metadata.labels["x"] = "y"
    assert "x" not in load_bootstrap_policy().cluster_roles[-1].metadata.labels


@pytest.mark.parametrize(
    ("user", "action", "reason"),
    [
        (
            UserInfo("system:kube-scheduler"),
            {"verb": "create", "resource": "pods", "subresource": "binding", "namespace": "n"},
            'ClusterRoleBinding "system:kube-scheduler" of ClusterRole "system:kube-scheduler" to User '
            '"system:kube-scheduler"',
        ),
        (
            UserInfo("system:serviceaccount:kube-system:generic-garbage-collector"),
            {"verb": "patch", "group": "any.example.com", "resource": "t", "subresource": "x", "namespace": "n"},
            'ClusterRoleBinding "system:controller:generic-garbage-collector" of ClusterRole '
            '"system:controller:generic-garbage-collector" to ServiceAccount "generic-garbage-collector/kube-system"',
        ),
    ],
)
def test_components_hold_their_roles(authorizer: Any, user: UserInfo, action: dict[str, Any], reason: str) -> None:
    verdict = authorizer.authorize(Attributes(user, Action(**action)))
    assert verdict.reason == f"RBAC: allowed by {reason}"


def test_everyone_may_see_health_and_version_and_nothing_else(authorizer: Any) -> None:
    anonymous = UserInfo("system:anonymous", groups=("system:unauthenticated",))
    answers = {
        path: authorizer.authorize(Attributes(anonymous, Action("get"), path)).allowed
        for path in ("/healthz", "/livez", "/readyz", "/version", "/version/", "/livez/ping", "/", "/api", "/metrics")
    }
    assert [path for path, yes in answers.items() if yes] == ["/healthz", "/livez", "/readyz", "/version", "/version/"]


READ = PolicyRule(verbs=["get", "list"], api_groups=[""], resources=["pods"])
EXPECTED = ClusterRole(metadata=ObjectMeta(name="r", labels={"l": "1"}, annotations={AUTOUPDATE: "true"}), rules=[READ])


def stored(**changes: Any) -> Any:
    metadata = ObjectMeta(name="r", uid="u", labels={"l": "1"}, annotations={AUTOUPDATE: "true"})
    return ClusterRole(**{"metadata": metadata, "rules": [READ], **changes})


class TestRoles:
    def test_a_missing_role_is_created(self) -> None:
        assert reconcile_role(None, EXPECTED).operation is Operation.CREATE

    def test_a_role_with_more_is_left_alone(self) -> None:
        more = PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"])
        existing = stored(rules=[more], metadata=ObjectMeta(labels={"l": "2", "m": "3"}, annotations={AUTOUPDATE: "t"}))
        done = reconcile_role(existing, EXPECTED)
        assert (done.operation, done.object, done.protected) == (Operation.NONE, existing, False)

    def test_missing_rights_labels_and_annotations_are_added(self) -> None:
        partly = PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])
        existing = stored(rules=[partly], metadata=ObjectMeta(name="r", uid="u", labels={"mine": "x"}))
        done = reconcile_role(existing, EXPECTED)
        assert done.operation is Operation.UPDATE
        assert done.object.rules == [partly, PolicyRule(verbs=["list"], api_groups=[""], resources=["pods"])]
        assert done.object.metadata.labels == {"l": "1", "mine": "x"}
        assert done.object.metadata.annotations == {AUTOUPDATE: "true"}
        assert done.object.metadata.uid == "u"
        assert existing.rules == [partly]
        assert existing.metadata.labels == {"mine": "x"}

    def test_a_protected_role_is_left_alone(self) -> None:
        existing = stored(rules=[], metadata=ObjectMeta(labels={"l": "1"}, annotations={AUTOUPDATE: "false"}))
        done = reconcile_role(existing, EXPECTED)
        assert (done.operation, done.object, done.protected) == (Operation.NONE, existing, True)

    def test_missing_selectors_are_added_and_unexpected_aggregation_is_removed(self) -> None:
        one, two = LabelSelector(match_labels={"a": "1"}), LabelSelector(match_labels={"b": "2"})
        expected = stored(aggregation_rule=AggregationRule(cluster_role_selectors=[one]))
        existing = stored(aggregation_rule=AggregationRule(cluster_role_selectors=[two]))
        done = reconcile_role(existing, expected)
        assert done.object.aggregation_rule.cluster_role_selectors == [two, one]
        assert reconcile_role(done.object, expected).operation is Operation.NONE
        plain = reconcile_role(existing, EXPECTED)
        assert (plain.operation, plain.object.aggregation_rule) == (Operation.UPDATE, None)
        gathered = reconcile_role(stored(), expected)
        assert gathered.object.aggregation_rule == expected.aggregation_rule


class TestBindings:
    def binding(self, role: Any, *users: Any, **annotations: Any) -> Any:
        return ClusterRoleBinding(
            metadata=ObjectMeta(name="b", annotations={AUTOUPDATE: "true", **annotations}),
            role_ref=RoleRef(kind="ClusterRole", name=role),
            subjects=[Subject(kind="User", name=user) for user in users],
        )

    def test_missing_subjects_are_added(self) -> None:
        done = reconcile_binding(self.binding("r", "mine", "a"), self.binding("r", "a", "b", "b"))
        assert done.operation is Operation.UPDATE
        assert [subject.name for subject in done.object.subjects] == ["mine", "a", "b"]
        assert reconcile_binding(done.object, self.binding("r", "a", "b")).operation is Operation.NONE

    def test_another_role_means_a_new_binding(self) -> None:
        expected = self.binding("r", "a")
        done = reconcile_binding(self.binding("other", "mine"), expected)
        assert (done.operation, done.object) == (Operation.RECREATE, expected)
        protected = self.binding("other", "mine", **{AUTOUPDATE: "false"})
        assert reconcile_binding(protected, expected).protected

    def test_a_missing_binding_is_created(self) -> None:
        assert reconcile_binding(None, self.binding("r")).operation is Operation.CREATE


def test_shipped_objects_need_nothing_once_stored() -> None:
    policy = load_bootstrap_policy()
    for first, second in zip(policy.cluster_roles, load_bootstrap_policy().cluster_roles, strict=True):
        assert reconcile_role(first, second).operation is Operation.NONE
    for binding, again in zip(policy.role_bindings, load_bootstrap_policy().role_bindings, strict=True):
        assert reconcile_binding(binding, again).operation is Operation.NONE
