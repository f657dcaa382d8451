"""ControllerRevisions; the expected data and hash are kube-controller-manager's."""

from __future__ import annotations

import msgspec

from steersman.api.apps.v1 import ControllerRevision
from steersman.controllers.workloads.revisions import data_of, holds, revision_hash, template_of
from tests.controllers.kubelet import template


def test_a_revision_holds_a_template_that_can_be_had_back() -> None:
    wanted = template(restart_policy="Always")
    data = data_of(wanted)
    assert data.startswith(b'{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"a"}},"spec":{')
    revision = ControllerRevision(data=msgspec.Raw(data), revision=1)
    assert holds(revision, data)
    assert not holds(revision, data_of(template("other")))
    assert template_of(revision) == wanted


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
