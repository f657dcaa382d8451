"""Tests of ordinals, names and storage of pods."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.apps.v1 import StatefulSet, StatefulSetOrdinals, StatefulSetSpec
from steersman.api.core.v1 import PersistentVolumeClaim, Pod, Volume
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.controllers.stateful_set.identity import (
    claims_of,
    has_identity,
    has_storage,
    is_member,
    new_pod,
    ordinals,
    parent_and_ordinal,
)
from tests.controllers.kubelet import LABELS, template


def stateful_set(**spec: Any) -> StatefulSet:
    claim = PersistentVolumeClaim(kind="PersistentVolumeClaim", metadata=ObjectMeta(name="data", labels={"x": "y"}))
    volumes = [Volume(name="data"), Volume(name="other")]
    given = StatefulSetSpec(
        service_name="svc",
        selector=LabelSelector(match_labels=LABELS),
        template=template(volumes=volumes),
        volume_claim_templates=[claim],
        **spec,
    )
    return StatefulSet(metadata=ObjectMeta(name="web", namespace="n", uid="u"), spec=given)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("web-3", ("web", 3)),
        ("a-b-10", ("a-b", 10)),
        ("web", ("", -1)),
        ("web-x", ("", -1)),
        ("web-2147483648", ("", -1)),
    ],
)
def test_a_name_says_the_set_and_the_number(name: str, found: tuple[str, int]) -> None:
    assert parent_and_ordinal(Pod(metadata=ObjectMeta(name=name))) == found


def test_numbers_begin_where_they_are_to() -> None:
    assert ordinals(stateful_set(replicas=2, ordinals=StatefulSetOrdinals(start=5))) == range(5, 7)
    assert ordinals(stateful_set()) == range(1)


def test_a_new_pod_has_all_that_is_its_own() -> None:
    own = stateful_set()
    pod = new_pod(own, 4, "web-abc")
    assert pod.metadata.name == pod.spec.hostname == "web-4"
    assert pod.spec.subdomain == "svc"
    assert pod.metadata.labels == {
        "app": "a",
        "controller-revision-hash": "web-abc",
        "statefulset.kubernetes.io/pod-name": "web-4",
        "apps.kubernetes.io/pod-index": "4",
    }
    assert [each.name for each in pod.spec.volumes] == ["data", "other"]
    assert is_member(own, pod)
    assert has_identity(pod)
    assert has_storage(own, pod)
    assert not has_storage(own, Pod(metadata=ObjectMeta(name="web-4")))


def test_claims_are_named_by_template_set_and_number() -> None:
    (claim,) = claims_of(stateful_set(), 4).values()
    assert (claim.metadata.name, claim.metadata.namespace, claim.kind) == ("data-web-4", "n", "")
    assert claim.metadata.labels == {"x": "y", "app": "a"}
