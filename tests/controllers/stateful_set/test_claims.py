"""Tests of the owners of claims by the retention policy."""

from __future__ import annotations

import pytest

from steersman.api.apps.v1 import StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec
from steersman.api.core.v1 import PersistentVolumeClaim, Pod
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.client.resources import PODS, STATEFUL_SETS
from steersman.controllers.stateful_set import claims
from steersman.controllers.workloads.controller_ref import new_controller_ref


def stateful_set(deleted: str, scaled: str) -> StatefulSet:
    policy = StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted=deleted, when_scaled=scaled)
    spec = StatefulSetSpec(replicas=1, persistent_volume_claim_retention_policy=policy)
    return StatefulSet(metadata=ObjectMeta(name="web", uid="set"), spec=spec)


def pod(number: int) -> Pod:
    return Pod(metadata=ObjectMeta(name=f"web-{number}", uid=f"pod {number}"))


def claim(*owners: OwnerReference) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name="c", owner_references=list(owners)))


@pytest.mark.parametrize(
    ("deleted", "scaled", "staying", "going"),
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", ["set"], ["set"]),
        ("Retain", "Delete", [], ["pod 1"]),
        ("Delete", "Delete", ["set"], ["pod 1"]),
    ],
)
def test_claims_belong_to_the_set_or_to_a_pod_that_is_scaled_away(
    deleted: str, scaled: str, staying: list[str], going: list[str]
) -> None:
    own = stateful_set(deleted, scaled)
    for number, expected in ((0, staying), (1, going)):
        others = [new_controller_ref(STATEFUL_SETS, own), new_controller_ref(PODS, pod(number))]
        for before in ([], others):
            found = claim(*before)
            claims.put_owners(found, own, pod(number))
            assert [each.uid for each in found.metadata.owner_references] == expected
            assert claims.is_owner_up_to_date(found, own, pod(number))


def test_a_claim_that_another_controls_is_left_to_it() -> None:
    other = OwnerReference(api_version="example.com/v1", kind="Other", name="o", uid="o", controller=True)
    own, found = stateful_set("Delete", "Delete"), claim(other)
    assert claims.has_unexpected_controller(found, own, pod(0))
    assert claims.is_owner_up_to_date(found, own, pod(0))
    claims.put_owners(found, own, pod(0))
    assert found.metadata.owner_references == [other]
    assert not claims.has_unexpected_controller(found, stateful_set("Retain", "Retain"), pod(0))


def test_what_belongs_to_a_pod_that_was_there_before_is_stale() -> None:
    found = claim(new_controller_ref(PODS, Pod(metadata=ObjectMeta(name="web-0", uid="before"))))
    assert claims.is_stale(found, PODS, pod(0))
    assert not claims.is_stale(found, PODS, pod(1))
