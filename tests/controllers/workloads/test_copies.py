"""Tests of copies of workload objects that share their templates."""

from __future__ import annotations

from steersman.api.apps.v1 import Deployment, DeploymentSpec
from steersman.api.meta.v1 import LabelSelector, ObjectMeta
from steersman.controllers.workloads.copies import mutable_copy, mutable_template_copy
from tests.controllers.kubelet import LABELS, template


def test_what_is_set_in_a_copy_is_not_set_in_the_original_and_the_template_is_not_copied() -> None:
    spec = DeploymentSpec(replicas=1, selector=LabelSelector(match_labels=LABELS), template=template())
    original = Deployment(metadata=ObjectMeta(name="a", annotations={"a": "b"}), spec=spec)
    copied = mutable_copy(original)
    copied.metadata.annotations["c"] = "d"
    copied.spec.replicas = copied.status.replicas = 2
    assert (original.metadata.annotations, original.spec.replicas, original.status.replicas) == ({"a": "b"}, 1, 0)
    assert copied.spec.template is original.spec.template
    own = mutable_template_copy(copied.spec.template)
    own.metadata.labels["x"] = "y"
    own.spec.tolerations = []
    own.spec.hostname = "h"
    assert original.spec.template.metadata.labels == LABELS
    assert original.spec.template.spec.hostname == ""
    assert own.spec.containers is original.spec.template.spec.containers
