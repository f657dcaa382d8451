"""Nodes with pods on them, and what a node then sees and may write."""

from __future__ import annotations

import copy
from random import Random
from typing import Any, Final

from tools.differential.case import NAME, NAMESPACE, Case, Step
from tools.differential.kinds import few

from .seen import bindings_aside
from .subjects import Subject

_CORE: Final = "/api/v1"
_PLACE: Final = f"{_CORE}/namespaces/{NAMESPACE}"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_NAMES: Final = tuple(f"{NAME}-{letter}" for letter in "abcd")
_SEEN: Final = 0.25
"""Seconds in which upstream finds out about pods, volumes and claims."""
_CASCADE: Final = "?gracePeriodSeconds=0"
_RESOURCES: Final = (
    ("", "secrets"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "configmaps"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceslices"),
    ("", "serviceaccounts"),
    ("coordination.k8s.io", "leases"),
    ("", "pods"),
    ("", "nodes"),
    ("storage.k8s.io", "csinodes"),
    ("", "services"),
    ("certificates.k8s.io", "podcertificaterequests"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("", "events"),
    ("node.k8s.io", "runtimeclasses"),
)
_VERBS: Final = ("get", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_SUBRESOURCES: Final = {
    "": ("", "", "", "status", "token"),
    "pods": ("", "status", "eviction", "log"),
    "serviceaccounts": ("", "token", "token", "other"),
    "nodes": ("", "status", "proxy"),
    "persistentvolumeclaims": ("", "status"),
    "configmaps": ("", "", "", "status"),
}

Body = dict[str, Any]


def node(number: int) -> Subject:
    """The kubelet of a node of the case."""
    return Subject(f"system:node:{NAME}-n{number}", ("system:nodes",))


def cases(random: Random) -> Case:
    """Pods are put on two nodes; these ask for things; pods go and come, and they ask again."""
    made = [Step("POST", f"{_CORE}/nodes", {"metadata": {"name": f"{NAME}-n{number}"}}) for number in range(2)]
    made += [_claim(random, letter) for letter in "ab"] + [_volume(random, letter) for letter in "ab"]
    if random.random() < 0.4:
        made.append(_attachment(random))
    made += [_pod(random, number) for number in range(random.randint(1, 3))]
    pods = [f"{_PLACE}/pods/{step.body['metadata']['name']}" for step in made if step.path.endswith("/pods")]
    made[-1] = _then_wait(made[-1])
    steps = [*made, *(_question(random) for _ in range(random.randint(5, 10)))]
    if random.random() < 0.4:
        steps.append(_then_wait(Step("DELETE", random.choice(pods) + _CASCADE, seen=bindings_aside)))
        steps += [_question(random) for _ in range(random.randint(3, 6))]
    if random.random() < 0.6:
        steps += [_attempt(random) for _ in range(random.randint(1, 4))]
    gone = [Step("DELETE", f"{step.path}/{step.body['metadata']['name']}{_CASCADE}") for step in reversed(made)]
    return Case("what nodes see", steps, cleanup=gone)


def _then_wait(step: Step) -> Step:
    return Step(step.method, step.path, step.body, pause=_SEEN, seen=step.seen)


def _claim(random: Random, letter: str) -> Step:
    spec: Body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec |= {"storageClassName": "", "volumeName": f"{NAME}-{letter}"}
    return Step("POST", f"{_PLACE}/persistentvolumeclaims", {"metadata": {"name": f"{NAME}-{letter}"}, "spec": spec})


def _volume(random: Random, letter: str) -> Step:
    secret = {"name": random.choice(_NAMES), "namespace": random.choice((NAMESPACE, NAMESPACE, "default"))}
    source = random.choice(
        (
            {"csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": secret}},
            {
                "csi": {
                    "driver": "d",
                    "volumeHandle": "h",
                    "nodeStageSecretRef": secret,
                    "controllerPublishSecretRef": secret,
                }
            },
            {"cephfs": {"monitors": ["m"], "secretRef": secret}},
            {"azureFile": {"shareName": "s", "secretName": random.choice(_NAMES)}},
            {
                "iscsi": {
                    "targetPortal": "1.2.3.4:3260",
                    "iqn": "iqn.2001-04.com.example:a",
                    "lun": 0,
                    "chapAuthSession": True,
                    "secretRef": secret,
                }
            },
            {"hostPath": {"path": "/a"}},
            {"flexVolume": {"driver": "d/e", "secretRef": secret}},
            {"rbd": {"monitors": ["m"], "image": "i", "secretRef": secret}},
        )
    )
    spec: Body = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
    if random.random() < 0.8:
        spec["claimRef"] = {"name": f"{NAME}-{random.choice('ab')}", "namespace": NAMESPACE}
    return Step("POST", f"{_CORE}/persistentvolumes", {"metadata": {"name": f"{NAME}-{letter}"}, "spec": spec})


def _attachment(random: Random) -> Step:
    spec = {
        "attacher": "d",
        "nodeName": f"{NAME}-n{random.randint(0, 1)}",
        "source": {"persistentVolumeName": f"{NAME}-a"},
    }
    return Step("POST", "/apis/storage.k8s.io/v1/volumeattachments", {"metadata": {"name": f"{NAME}-a"}, "spec": spec})


def _pod(random: Random, number: int) -> Step:
    def name() -> str:
        return random.choice(_NAMES)

    container: Body = {"name": "c", "image": "i"}
    if random.random() < 0.4:
        container["env"] = [
            {
                "name": "E",
                "valueFrom": random.choice(
                    ({"secretKeyRef": {"name": name(), "key": "k"}}, {"configMapKeyRef": {"name": name(), "key": "k"}})
                ),
            }
        ]
    if random.random() < 0.3:
        container["envFrom"] = [random.choice(({"secretRef": {"name": name()}}, {"configMapRef": {"name": name()}}))]
    sources: tuple[Body, ...] = (
        {"secret": {"secretName": name()}},
        {"configMap": {"name": name()}},
        {"persistentVolumeClaim": {"claimName": name()}},
        {"projected": {"sources": [{"secret": {"name": name()}}, {"configMap": {"name": name()}}]}},
        {"csi": {"driver": "d", "nodePublishSecretRef": {"name": name()}}},
        {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            }
        },
        {"emptyDir": {}},
        {"cephfs": {"monitors": ["m"], "secretRef": {"name": name()}}},
    )
    volumes = [{"name": f"v{place}", **source} for place, source in enumerate(few(random, [*sources]))]
    spec: Body = {"containers": [container], "volumes": volumes, "automountServiceAccountToken": False}
    if random.random() < 0.2:
        spec["initContainers"] = [{**copy.deepcopy(container), "name": "i"}]
    if random.random() < 0.3:
        spec["imagePullSecrets"] = [{"name": name()}]
    if random.random() < 0.4:
        spec["serviceAccountName"] = name()
    if random.random() < 0.3:
        spec["resourceClaims"] = [
            random.choice(
                ({"name": "r", "resourceClaimName": name()}, {"name": "r", "resourceClaimTemplateName": name()})
            )
        ]
    if random.random() < 0.9:
        spec["nodeName"] = f"{NAME}-n{random.choice((0, 0, 1))}"
    metadata: Body = {"name": f"{NAME}-p{number}"}
    if random.random() < 0.1:
        metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
    return Step("POST", f"{_PLACE}/pods", {"metadata": metadata, "spec": spec}, seen=bindings_aside)


def _question(random: Random) -> Step:
    """Return an access review for a node."""
    group, resource = random.choice(_RESOURCES)
    attributes: Body = {"group": group, "resource": resource, "verb": random.choice(_VERBS), "version": "v1"}
    if resource not in ("persistentvolumes", "nodes", "volumeattachments", "csinodes"):
        attributes["namespace"] = random.choice((NAMESPACE, NAMESPACE, NAMESPACE, "kube-node-lease", "default", ""))
    names = [*_NAMES, f"{NAME}-n0", f"{NAME}-n1", f"{NAME}-p0", f"{NAME}-p0-v0", f"{NAME}-p1-v1"]
    usual = random.random() < 0.8
    if random.random() < 0.85:
        attributes["name"] = random.choice(_NAMES if usual else names)
    if resource in ("nodes", "csinodes", "leases", "resourceslices") and usual:
        attributes["name"] = f"{NAME}-n{random.randint(0, 1)}"
    if not usual or random.random() < 0.3:
        attributes["subresource"] = random.choice(_SUBRESOURCES.get(resource, _SUBRESOURCES[""]))
    if random.random() < 0.3:
        attributes["fieldSelector"] = _field_selector(random)
    if random.random() < 0.08:
        attributes["labelSelector"] = {"rawSelector": "a=b"}
    who = node(random.randint(0, 1))
    groups = list(who.groups) if random.random() < 0.93 else random.choice(([], ["system:masters-not"]))
    name = who.name if random.random() < 0.95 else random.choice(("system:node:", "system:node", f"{NAME}-n0"))
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": name, "groups": groups, "resourceAttributes": attributes},
    }
    return Step("POST", _REVIEWS, body, seen=bindings_aside)


def _field_selector(random: Random) -> Body:
    if random.random() < 0.5:
        return {
            "rawSelector": random.choice(
                (
                    f"spec.nodeName={NAME}-n0",
                    f"spec.nodeName={NAME}-n1",
                    f"metadata.name={NAME}-n0",
                    f"metadata.name={NAME}-a",
                    f"spec.nodeName={NAME}-n0,status.phase=Running",
                    "spec.nodeName!=x",
                    f"spec.nodeName=={NAME}-n0",
                )
            )
        }
    key = random.choice(("spec.nodeName", "metadata.name"))
    values = [f"{NAME}-{random.choice(('n0', 'n1', 'a'))}" for _ in range(random.choice((1, 1, 2)))]
    return {"requirements": [{"key": key, "operator": random.choice(("In", "In", "NotIn")), "values": values}]}


def _attempt(random: Random) -> Step:
    """Something that a node writes; NodeRestriction judges it too. Nothing is stored."""
    who, other = node(random.randint(0, 1)), f"{NAME}-n{random.randint(0, 1)}"
    label = random.choice(
        (
            "a",
            "node-role.kubernetes.io/x",
            "kubernetes.io/arch",
            "node.kubernetes.io/x",
            "kubelet.kubernetes.io/y",
            "node-restriction.kubernetes.io/z",
            "topology.kubernetes.io/zone",
            "kubernetes.io/other",
            "x.k8s.io/y",
        )
    )
    merge = "application/merge-patch+json"
    tainted = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    own = {"metadata": {"labels": {label: "v"}}}
    choices: tuple[tuple[str, str, Any, str], ...] = (
        ("PATCH", f"{_CORE}/nodes/{other}?dryRun=All", own, merge),
        ("PATCH", f"{_CORE}/nodes/{other}/status?dryRun=All", own, merge),
        ("PATCH", f"{_CORE}/nodes/{other}?dryRun=All", tainted, merge),
        (
            "POST",
            f"{_CORE}/nodes?dryRun=All",
            {"metadata": {"name": f"{NAME}-n2", **own["metadata"]}},
            "application/json",
        ),
        ("DELETE", f"{_CORE}/nodes/{other}?dryRun=All", None, ""),
        ("DELETE", f"{_PLACE}/pods/{NAME}-p0?dryRun=All", None, ""),
        ("PATCH", f"{_PLACE}/pods/{NAME}-p0/status?dryRun=All", {"status": {"phase": "Running"}}, merge),
        ("PATCH", f"{_PLACE}/pods/{NAME}-p0/status?dryRun=All", own, merge),
        (
            "POST",
            f"{_PLACE}/pods/{NAME}-p0/eviction?dryRun=All",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": f"{NAME}-p0"}},
            "application/json",
        ),
        ("POST", f"{_PLACE}/pods?dryRun=All", _mirror(random, other), "application/json"),
        (
            "POST",
            f"{_PLACE}/serviceaccounts/{random.choice(_NAMES)}/token?dryRun=All",
            {"spec": random.choice(({}, {"boundObjectRef": {"kind": "Pod", "name": f"{NAME}-p0", "uid": "u"}}))},
            "application/json",
        ),
        (
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?dryRun=All",
            {"metadata": {"name": other}},
            "application/json",
        ),
        (
            "POST",
            "/apis/storage.k8s.io/v1/csinodes?dryRun=All",
            {"metadata": {"name": other}, "spec": {"drivers": []}},
            "application/json",
        ),
        (
            "POST",
            "/apis/resource.k8s.io/v1/resourceslices?dryRun=All",
            {
                "metadata": {"name": f"{NAME}-s"},
                "spec": {
                    "driver": "d",
                    "nodeName": other,
                    "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                },
            },
            "application/json",
        ),
        ("GET", f"{_PLACE}/secrets/{random.choice(_NAMES)}", None, ""),
        ("GET", f"{_CORE}/pods?fieldSelector=spec.nodeName%3D{NAME}-n9", None, ""),
    )
    method, path, body, media = random.choice(choices)
    return Step(method, path, body, media or "application/json", fields=who.headers, seen=bindings_aside)


def _mirror(random: Random, where: str) -> Body:
    metadata: Body = {"name": f"{NAME}-m"}
    if random.random() < 0.8:
        metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
    if random.random() < 0.7:
        owner = {"apiVersion": "v1", "kind": "Node", "name": where, "uid": "u", "controller": True}
        metadata["ownerReferences"] = [owner]
    spec: Body = {"containers": [{"name": "c", "image": "i"}], "nodeName": where}
    if random.random() < 0.2:
        spec["serviceAccountName"] = "x"
    if random.random() < 0.2:
        spec["volumes"] = [{"name": "v", "secret": {"secretName": "s"}}]
    return {"metadata": metadata, "spec": spec}
