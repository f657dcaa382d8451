"""Tests of ControllerRevisions; the expected data and hash are kube-controller-manager's."""

from __future__ import annotations

import msgspec

from steersman.api.apps.v1 import ControllerRevision
from steersman.controllers.workloads.revisions import has_data, revision_data, revision_hash, revision_template
from tests.controllers.kubelet import template


def test_a_revision_holds_a_template_that_can_be_had_back() -> None:
    wanted = template(restart_policy="Always")
    data = revision_data(wanted)
    assert data.startswith(b'{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"a"}},"spec":{')
    revision = ControllerRevision(data=msgspec.Raw(data), revision=1)
    assert has_data(revision, data)
    assert not has_data(revision, revision_data(template("other")))
    assert revision_template(revision) == wanted


def test_a_revision_has_upstreams_hash() -> None:
    data = (
        b'{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"image":"i",'
        b'"imagePullPolicy":"Always","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log",'
        b'"terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always",'
        b'"schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}}}'
    )
    assert revision_hash(data, 0) == "5c687f844d"


def test_the_hash_differs_with_each_collision() -> None:
    assert revision_hash(b"", 0) != revision_hash(b"", 1)
