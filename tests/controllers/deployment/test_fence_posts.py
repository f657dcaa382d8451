"""Tests of the limits of a rollout."""

from __future__ import annotations

import pytest

from steersman.api.apps.v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.controllers.deployment.fence_posts import by_size, max_surge, max_unavailable, new_replicas


def deployment(replicas: int, surge: int | str | None, unavailable: int | str | None) -> Deployment:
    rolling = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    strategy = DeploymentStrategy(type="RollingUpdate", rolling_update=rolling)
    return Deployment(spec=DeploymentSpec(replicas=replicas, strategy=strategy))


def replica_set(replicas: int, name: str = "", created: str = "") -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name=name, creation_timestamp=created or None), spec=ReplicaSetSpec(replicas=replicas)
    )


@pytest.mark.parametrize(
    ("given", "posts"),
    [
        ((10, "25%", "25%"), (3, 2)),
        ((2, 0, "1%"), (0, 1)),
        ((1, "1%", "25%"), (1, 0)),
        ((3, 1, 5), (1, 3)),
        ((0, 1, 1), (1, 0)),
    ],
)
def test_surge_is_rounded_up_and_unavailable_down_but_one_of_them_is_left(
    given: tuple[int, int | str, int | str], posts: tuple[int, int]
) -> None:
    found = deployment(*given)
    assert (max_surge(found), max_unavailable(found)) == posts


@pytest.mark.parametrize(("old", "new", "then"), [(10, 0, 3), (8, 3, 5), (13, 0, 0), (0, 4, 10)])
def test_the_newest_gets_what_the_surge_allows(old: int, new: int, then: int) -> None:
    newest = replica_set(new)
    assert new_replicas(deployment(10, "25%", 0), [replica_set(old), newest], newest) == then


def test_the_largest_come_first_then_the_newer_or_the_older() -> None:
    sets = [replica_set(1, "a", "1"), replica_set(3, "b", "2"), replica_set(3, "c", "3")]
    assert [each.metadata.name for each in by_size(sets, newer_first=True)] == ["c", "b", "a"]
    assert [each.metadata.name for each in by_size(sets, newer_first=False)] == ["b", "c", "a"]
