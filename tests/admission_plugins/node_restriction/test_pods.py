"""Tests of the limits of a kubelet's writes to pods."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_plugins.node_restriction.pods import (
    forbidden_in_mirror_pod,
    forbidden_in_spec_of_mirror_pod,
    forbidden_in_status,
)
from steersman.api.core.v1 import Pod
from steersman.machinery.codec.serializer import from_plain
from tests.admission_plugins.pods_and_namespaces import CONTAINER, make_pod

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
MIRROR = {"kubernetes.io/config.mirror": "x"}


def make_mirror_pod(spec: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    return make_pod(
        {"nodeName": "n", **(spec or {})}, **{"annotations": MIRROR, "ownerReferences": [OWNER], **metadata}
    )


def refusal_text(pod: Pod) -> str:
    return forbidden_in_mirror_pod("n", pod, lambda node: "u") or forbidden_in_spec_of_mirror_pod("n", pod)


def test_a_mirror_pod_of_its_own_may_be_made() -> None:
    volumes = [
        {"name": "a", "hostPath": {"path": "/"}},
        {"name": "b", "emptyDir": {}},
        {"name": "c", "projected": {"sources": [{"downwardAPI": {"items": []}}]}},
    ]
    assert refusal_text(make_mirror_pod({"volumes": volumes})) == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"annotations": {}}, 'pod does not have "kubernetes.io/config.mirror" annotation, node "n" can only create'),
        ({"ownerReferences": []}, 'node "n" can only create pods with an owner reference set to itself'),
        ({"ownerReferences": [OWNER, OWNER]}, 'node "n" can only create pods with a single owner reference'),
        ({"ownerReferences": [{**OWNER, "name": "m"}]}, "with an owner reference set to itself"),
        ({"ownerReferences": [{**OWNER, "controller": False}]}, "with a controller owner reference set to itself"),
        ({"ownerReferences": [{**OWNER, "blockOwnerDeletion": True}]}, "must not set blockOwnerDeletion"),
        ({"ownerReferences": [{**OWNER, "uid": "v"}]}, "node n UID mismatch: expected v got u"),
    ],
)
def test_others_may_not(change: dict[str, Any], reason: str) -> None:
    assert reason in refusal_text(make_mirror_pod(**change))


def spec_with_volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


def spec_with_variable(**source: Any) -> dict[str, Any]:
    return {"containers": [{**CONTAINER, "env": [{"name": "A", "valueFrom": source}]}]}


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"serviceAccountName": "a"}, "serviceaccounts"),
        ({"imagePullSecrets": [{"name": "s"}]}, "secrets"),
        (spec_with_variable(secretKeyRef={"name": "s", "key": "k"}), "secrets"),
        (spec_with_variable(configMapKeyRef={"name": "s", "key": "k"}), "configmaps"),
        ({"resourceClaims": [{"name": "r", "resourceClaimName": "rc"}]}, "resourceclaims"),
        (spec_with_volume(secret={"secretName": "s"}), "secrets"),
        (spec_with_volume(configMap={"name": ""}), "configmaps (via configmap volumes)"),
        (spec_with_volume(csi={"driver": "d"}), "csidrivers (via CSI volumes)"),
        (spec_with_volume(glusterfs={"endpoints": "e", "path": "p"}), "endpoints (via glusterFS volumes)"),
        (spec_with_volume(persistentVolumeClaim={"claimName": "c"}), "persistentvolumeclaims"),
        (
            spec_with_volume(ephemeral={"volumeClaimTemplate": {"spec": {}}}),
            "persistentvolumeclaims (via ephemeral volumes)",
        ),
        (
            spec_with_volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}),
            "serviceaccounts (via projected volumes)",
        ),
        (spec_with_volume(projected={"sources": [{"clusterTrustBundle": {"path": "t"}}]}), "clustertrustbundles"),
    ],
)
def test_a_mirror_pod_names_no_objects(spec: Any, what: str) -> None:
    assert refusal_text(make_mirror_pod(spec)) == f'node "n" can not create pods that reference {what}'


def test_a_volume_of_no_kind() -> None:
    assert "unknown volume type" in refusal_text(make_mirror_pod(spec_with_volume()))


def with_status(status: dict[str, Any], node: str = "n", **metadata: Any) -> Pod:
    plain = {"metadata": {"name": "p", **metadata}, "spec": {"nodeName": node}, "status": status}
    return from_plain(Pod, plain)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (with_status({}), with_status({"phase": "Running"}), ""),
        (with_status({}, "m"), with_status({}, "m"), "can only update pod status for pods with spec.nodeName set"),
        (with_status({}), with_status({}, labels={"a": "b"}), "cannot update labels through pod status"),
        (with_status({}), with_status({"resourceClaimStatuses": [{"name": "r"}]}), "resource claim statues"),
        (
            with_status({}),
            with_status({"extendedResourceClaimStatus": {"resourceClaimName": "r", "requestMappings": []}}),
            "cannot update extended resource claim status",
        ),
    ],
)
def test_what_may_be_said_of_a_pod(old: Any, new: Any, reason: str) -> None:
    found = forbidden_in_status("n", old, new)
    assert reason in found
    assert bool(found) is bool(reason)
