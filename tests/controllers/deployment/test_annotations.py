"""Tests of the annotations of Deployments and ReplicaSets."""

from __future__ import annotations

from steersman.api.apps.v1 import Deployment, ReplicaSet
from steersman.api.meta.v1 import ObjectMeta
from steersman.controllers.deployment import deployment_annotations


def replica_set(**annotations: str) -> ReplicaSet:
    named = {f"deployment.kubernetes.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return ReplicaSet(metadata=ObjectMeta(annotations=named))


def test_own_annotations_are_not_inherited() -> None:
    given = {
        "mine": "x",
        deployment_annotations.REVISION: "7",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    new = replica_set(revision="1")
    assert deployment_annotations.update_annotations(Deployment(metadata=ObjectMeta(annotations=given)), new, 1)
    assert new.metadata.annotations == {"mine": "x", deployment_annotations.REVISION: "1"}
    assert not deployment_annotations.update_annotations(Deployment(metadata=ObjectMeta(annotations=given)), new, 1)


def test_a_replica_set_that_is_gone_back_to_remembers_its_revisions() -> None:
    new = replica_set(revision="1")
    for revision in (3, 5):
        assert deployment_annotations.update_annotations(Deployment(), new, revision)
    assert new.metadata.annotations == {
        deployment_annotations.REVISION: "5",
        deployment_annotations.REVISION_HISTORY: "1,3",
    }


def test_old_revisions_are_forgotten_when_they_are_too_many() -> None:
    new = replica_set(revision="1000", revision_history=",".join(["999"] * 500))
    deployment_annotations.update_annotations(Deployment(), new, 1001)
    history = new.metadata.annotations[deployment_annotations.REVISION_HISTORY]
    assert len(history) <= 2000
    assert history.endswith("999,1000")


def test_a_revision_that_cannot_be_read_is_left_alone() -> None:
    new = replica_set(revision="x")
    assert not deployment_annotations.update_annotations(Deployment(), new, 2)
    assert deployment_annotations.max_revision([new, replica_set(revision="4"), replica_set()]) == 4


def test_the_last_revision_is_the_second_highest() -> None:
    assert deployment_annotations.last_revision([replica_set(revision=each) for each in ("2", "7", "5")]) == 5
    assert deployment_annotations.last_revision([replica_set(revision="2")]) == 0
