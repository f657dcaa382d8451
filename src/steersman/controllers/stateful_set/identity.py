"""What makes a pod of a StatefulSet the one that it is: its number, its name, its volumes (stateful_set_utils.go)."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from steersman.api.apps.v1 import StatefulSet
from steersman.api.core.v1 import PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume
from steersman.client.resources import STATEFUL_SETS
from steersman.controllers.workloads.pod_control import pod_of
from steersman.controllers.workloads.revisions import REVISION_HASH
from steersman.machinery.codec.serializer import deep_copy

_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_NAME: Final = re.compile(r"(.*)-([0-9]{1,10})", re.ASCII | re.DOTALL)


def parent_and_ordinal(pod: Pod) -> tuple[str, int]:
    """The name of the set that a pod's name says it is of, and its number; -1 for a name that says no such thing."""
    found = _NAME.fullmatch(pod.metadata.name)
    if found is None or int(found[2]) >= 2**31:
        return "", -1
    return found[1], int(found[2])


def ordinal_of(pod: Pod) -> int:
    """The number of a pod."""
    return parent_and_ordinal(pod)[1]


def ordinals(stateful_set: StatefulSet) -> range:
    """The numbers that a set has."""
    start = stateful_set.spec.ordinals.start if stateful_set.spec.ordinals else 0
    return range(start, start + replicas_of(stateful_set))


def replicas_of(stateful_set: StatefulSet) -> int:
    """How many pods are asked for."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def is_member(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Whether a pod's name says that it is one of the set's."""
    return parent_and_ordinal(pod)[0] == stateful_set.metadata.name


def revision_of(pod: Pod) -> str:
    """The name of the revision that a pod is of."""
    return pod.metadata.labels.get(REVISION_HASH, "")


def new_pod(stateful_set: StatefulSet, ordinal: int, revision: str) -> Pod:
    """The pod of a number, as the set's template says."""
    pod = pod_of(stateful_set.spec.template, STATEFUL_SETS, stateful_set)
    pod.metadata.name = f"{stateful_set.metadata.name}-{ordinal}"
    put_identity(stateful_set, pod)
    pod.metadata.labels[REVISION_HASH] = revision
    pod.spec = msgspec.structs.replace(pod.spec, hostname=pod.metadata.name, subdomain=stateful_set.spec.service_name)
    put_storage(stateful_set, pod)
    return pod


def has_identity(pod: Pod) -> bool:
    """Whether a pod's labels say its name."""
    return pod.metadata.labels.get(_POD_NAME) == pod.metadata.name


def put_identity(stateful_set: StatefulSet, pod: Pod) -> None:
    """Has a pod's labels say its name and number."""
    own = {_POD_NAME: pod.metadata.name, _POD_INDEX: str(ordinal_of(pod))}
    pod.metadata.namespace = stateful_set.metadata.namespace
    pod.metadata.labels = {**pod.metadata.labels, **own}


def claim_name(stateful_set: StatefulSet, template: PersistentVolumeClaim, ordinal: int) -> str:
    """The name of the claim of a template for a number."""
    return f"{template.metadata.name}-{stateful_set.metadata.name}-{ordinal}"


def claims_of(stateful_set: StatefulSet, ordinal: int) -> dict[str, PersistentVolumeClaim]:
    """The claims of a number, by the names of their templates."""
    selector = stateful_set.spec.selector
    found = {}
    for template in stateful_set.spec.volume_claim_templates:
        claim = deep_copy(template)
        claim.kind = claim.api_version = ""
        claim.metadata.name = claim_name(stateful_set, template, ordinal)
        claim.metadata.namespace = stateful_set.metadata.namespace
        claim.metadata.labels = {**claim.metadata.labels, **(selector.match_labels if selector else {})}
        found[template.metadata.name] = claim
    return found


def has_storage(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Whether a pod uses the claims of its number."""
    used = {
        volume.name: volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    ordinal = ordinal_of(pod)
    return all(
        used.get(each.metadata.name) == claim_name(stateful_set, each, ordinal)
        for each in stateful_set.spec.volume_claim_templates
    )


def put_storage(stateful_set: StatefulSet, pod: Pod) -> None:
    """Has a pod use the claims of its number, in the place of volumes of their names."""
    ordinal, templates = ordinal_of(pod), stateful_set.spec.volume_claim_templates
    own = []
    for each in templates:
        source = PersistentVolumeClaimVolumeSource(claim_name=claim_name(stateful_set, each, ordinal))
        own.append(Volume(name=each.metadata.name, persistent_volume_claim=source))
    names = {each.name for each in own}
    others = [each for each in pod.spec.volumes if each.name not in names]
    pod.spec = msgspec.structs.replace(pod.spec, volumes=[*own, *others])
