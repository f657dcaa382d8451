"""References of stored pods and volumes."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import PersistentVolume, Pod
from steersman.authorization.node.references import (
    CLAIM,
    CONFIG_MAP,
    RESOURCE_CLAIM,
    SECRET,
    SERVICE_ACCOUNT,
    node_of,
    pod_references,
    volume_references,
)
from steersman.machinery.codec.serializer import encode, from_plain


def of_pod(spec: dict[str, Any], **more: Any) -> set[tuple[str, str]]:
    plain = {"metadata": {"name": "p", **more.pop("metadata", {})}, "spec": {"nodeName": "n", **spec}, **more}
    found = pod_references("p", encode(from_plain(Pod, plain)))
    assert found.node == "n"
    return set(found.references)


CONTAINER = {
    "name": "c",
    "env": [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "by-key", "key": "k"}}},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "map-by-key", "key": "k"}}},
        {"name": "C", "value": "plain"},
    ],
    "envFrom": [{"secretRef": {"name": "whole"}}, {"configMapRef": {"name": "map-whole"}}],
}
OF_CONTAINER = {(SECRET, "by-key"), (SECRET, "whole"), (CONFIG_MAP, "map-by-key"), (CONFIG_MAP, "map-whole")}


@pytest.mark.parametrize("where", ["containers", "initContainers", "ephemeralContainers"])
def test_variables_of_all_containers(where: str) -> None:
    assert of_pod({where: [CONTAINER]}) == OF_CONTAINER


@pytest.mark.parametrize(
    ("volume", "found"),
    [
        ({"secret": {"secretName": "s"}}, {(SECRET, "s")}),
        ({"configMap": {"name": "m"}}, {(CONFIG_MAP, "m")}),
        ({"persistentVolumeClaim": {"claimName": "c"}}, {(CLAIM, "c")}),
        ({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, {(CLAIM, "p-v")}),
        ({"azureFile": {"secretName": "s", "shareName": "x"}}, {(SECRET, "s")}),
        ({"cephfs": {"monitors": ["m"], "secretRef": {"name": "s"}}}, {(SECRET, "s")}),
        ({"cinder": {"volumeID": "i", "secretRef": {"name": "s"}}}, {(SECRET, "s")}),
        ({"flexVolume": {"driver": "d", "secretRef": {"name": "s"}}}, {(SECRET, "s")}),
        ({"rbd": {"monitors": ["m"], "image": "i", "secretRef": {"name": "s"}}}, {(SECRET, "s")}),
        ({"scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "s"}}}, {(SECRET, "s")}),
        ({"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0, "secretRef": {"name": "s"}}}, {(SECRET, "s")}),
        ({"storageos": {"secretRef": {"name": "s"}}}, {(SECRET, "s")}),
        ({"csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}}, {(SECRET, "s")}),
        (
            {"projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "m"}}]}},
            {(SECRET, "s"), (CONFIG_MAP, "m")},
        ),
        ({"emptyDir": {}}, set()),
    ],
)
def test_volumes(volume: dict[str, Any], found: Any) -> None:
    assert of_pod({"volumes": [{"name": "v", **volume}]}) == found


def test_the_account_and_what_images_are_pulled_with() -> None:
    found = of_pod({"serviceAccountName": "a", "imagePullSecrets": [{"name": "pull"}, {}]})
    assert found == {(SERVICE_ACCOUNT, "a"), (SECRET, "pull")}


def test_claims_of_devices_as_the_status_names_them() -> None:
    claims = [
        {"name": "named", "resourceClaimName": "direct"},
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "unmade", "resourceClaimTemplateName": "t"},
        {"name": "none", "resourceClaimTemplateName": "t"},
    ]
    status = {
        "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "p-made-x"}, {"name": "none"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "extended", "requestMappings": []},
    }
    found = of_pod({"resourceClaims": claims}, status=status)
    assert found == {(RESOURCE_CLAIM, name) for name in ("direct", "p-made-x", "extended")}


def test_a_mirror_pod_leads_to_nothing() -> None:
    annotations = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    assert of_pod({"containers": [CONTAINER]}, metadata=annotations) == set()


def test_a_pod_without_a_node_leads_to_nothing() -> None:
    pod = from_plain(Pod, {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}})
    assert pod_references("p", encode(pod)) == ("", (), "")


def stored(uid: str, node: str, **more: Any) -> bytes:
    spec = {"nodeName": node, "containers": [CONTAINER], **more.pop("spec", {})}
    return encode(from_plain(Pod, {"metadata": {"name": "p", "uid": uid}, "spec": spec, **more}))


def test_a_pod_that_cannot_lead_to_more_is_read_once() -> None:
    before = pod_references("p", stored("1", "n"))
    assert pod_references("p", stored("1", "n", status={"phase": "Running"}), before) is before


ANOTHER: dict[str, Any] = {"secretRef": {"name": "another"}}
GROWN = {
    "another pod": stored("2", "n", spec={"containers": [{"name": "c", "envFrom": [ANOTHER]}]}),
    "another node": stored("1", "m", spec={"containers": [{"name": "c", "envFrom": [ANOTHER]}]}),
    "a container to debug": stored("1", "n", spec={"ephemeralContainers": [{"name": "d", "envFrom": [ANOTHER]}]}),
    "a claim that was made": stored(
        "1",
        "n",
        spec={"resourceClaims": [{"name": "r", "resourceClaimTemplateName": "t"}]},
        status={"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "another"}]},
    ),
    "extended resources": stored("1", "n", status={"extendedResourceClaimStatus": {"resourceClaimName": "another"}}),
}


@pytest.mark.parametrize("what", GROWN)
def test_a_pod_that_leads_to_more_is_read_again(what: Any) -> None:
    before = pod_references("p", stored("1", "n"))
    assert "another" in {name for _, name in pod_references("p", GROWN[what], before).references}


def test_a_pod_that_has_led_to_more_is_read_each_time() -> None:
    grown = pod_references("p", GROWN["a container to debug"])
    more = stored(
        "1", "n", spec={"ephemeralContainers": [{"name": "e", "envFrom": [{"secretRef": {"name": "third"}}]}]}
    )
    assert (SECRET, "third") in pod_references("p", more, grown).references


@pytest.mark.parametrize(
    ("source", "secrets"),
    [
        ({"azureFile": {"secretName": "s", "shareName": "x"}}, {("mine", "s")}),
        ({"azureFile": {"secretName": "s", "shareName": "x", "secretNamespace": "o"}}, {("o", "s")}),
        ({"rbd": {"monitors": [], "image": "i", "secretRef": {"name": "s"}}}, {("mine", "s")}),
        (
            {"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0, "secretRef": {"name": "s", "namespace": "o"}}},
            {("o", "s")},
        ),
        ({"cinder": {"volumeID": "i", "secretRef": {"name": "s"}}}, {("", "s")}),
        (
            {
                "csi": {
                    "driver": "d",
                    "volumeHandle": "h",
                    **{
                        f"{step}SecretRef": {"name": step, "namespace": "o"}
                        for step in ("controllerPublish", "controllerExpand", "nodePublish", "nodeStage", "nodeExpand")
                    },
                }
            },
            {("o", "nodePublish"), ("o", "nodeStage"), ("o", "nodeExpand")},
        ),
        ({"hostPath": {"path": "/x"}}, set()),
    ],
)
def test_secrets_of_volumes_that_nodes_need(source: dict[str, Any], secrets: Any) -> None:
    spec = {"claimRef": {"namespace": "mine", "name": "c"}, **source}
    found = volume_references(encode(from_plain(PersistentVolume, {"metadata": {"name": "v"}, "spec": spec})))
    assert found.claim == ("mine", "c")
    assert set(found.secrets) == secrets


def test_a_volume_for_no_claim_leads_to_nothing() -> None:
    volume = from_plain(PersistentVolume, {"metadata": {"name": "v"}, "spec": {"rbd": {"monitors": [], "image": "i"}}})
    assert volume_references(encode(volume)) == (None, ())


def test_the_node_of_an_attachment() -> None:
    assert node_of(b'{"metadata":{"name":"a"},"spec":{"attacher":"x","nodeName":"n"}}') == "n"
    assert node_of(b'{"metadata":{"name":"a"},"spec":{}}') == ""
