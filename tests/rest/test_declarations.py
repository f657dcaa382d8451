"""Declarations of resources, and the context of a request."""

from __future__ import annotations

import pytest

from steersman.api.apps.v1 import Deployment
from steersman.api.core.v1 import Pod
from steersman.kinds.built_in import built_in
from steersman.kinds.open import OpenKind
from steersman.machinery.identity.schema import GroupKind, GroupResource, GroupVersionKind
from steersman.rest.context import Context, loopback
from steersman.rest.resource import Resource
from steersman.rest.strategy import ANY_NAME, StatusStrategy, Strategy

PODS = Resource(kind=built_in(Pod), plural="pods", name_validator=ANY_NAME)
DEPLOYMENTS = Resource(
    kind=built_in(Deployment), plural="deployments", storage_prefix="work/deployments", name_validator=ANY_NAME
)


def test_what_follows_from_a_declaration() -> None:
    assert (PODS.kind.name, PODS.key_prefix) == ("Pod", "/registry/pods/")
    assert DEPLOYMENTS.key_prefix == "/registry/work/deployments/"
    own = Resource(kind=OpenKind(GroupVersionKind("e.x", "v1", "Pod")), plural="pods", name_validator=ANY_NAME)
    assert own.key_prefix == "/registry/e.x/pods/"
    assert DEPLOYMENTS.group_resource == GroupResource("apps", "deployments")
    assert DEPLOYMENTS.group_kind == GroupKind("apps", "Deployment")


def test_a_declaration_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        PODS.plural = "others"  # type: ignore[misc]


def test_a_warning_is_told_once() -> None:
    ctx = Context()
    for text in ("a", "b", "a"):
        ctx.warn(text)
    assert ctx.warnings == ["a", "b"]


def test_the_server_itself_may_do_everything() -> None:
    ctx = loopback("ns", "a")
    assert (ctx.user.name, ctx.user.groups) == ("system:apiserver", ("system:masters",))
    assert (ctx.action.namespace, ctx.action.name, ctx.dry_run) == ("ns", "a", False)
    assert loopback().warnings is not loopback().warnings


async def test_the_usual_strategy_lets_everything_be() -> None:
    strategy: Strategy[Pod] = Strategy()
    pod = Pod()
    assert strategy.bind(None) is strategy
    assert list(strategy.validate(Context(), pod)) == list(strategy.validate_update(Context(), pod, pod)) == []
    assert not strategy.begin_delete(Context(), pod)
    assert strategy.may_delete_during_update(Context(), pod, pod)
    assert pod == Pod()


def test_an_update_of_the_status_changes_status_and_metadata_only() -> None:
    old, new = Pod(), Pod()
    old.spec.node_name, new.spec.node_name = "n1", "n2"
    new.status.phase = "Running"
    new.metadata.labels = {"a": "b"}
    strategy: StatusStrategy[Pod] = StatusStrategy()
    strategy.prepare_for_update(Context(), new, old)
    assert (new.spec.node_name, new.status.phase, new.metadata.labels) == ("n1", "Running", {"a": "b"})
