"""Identity of a StatefulSet's pods: ordinal, name, and volumes (stateful_set_utils.go)."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from steersman.api.apps.v1 import StatefulSet
from steersman.api.core.v1 import PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume
from steersman.client.resources import STATEFUL_SETS
from steersman.controllers.workloads.pod_control import pod_from_template
from steersman.controllers.workloads.revisions import REVISION_HASH
from steersman.machinery.codec.serializer import deep_copy
from steersman.work.patterns import late_pattern

_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_NAME: Final = late_pattern(r"(.*)-([0-9]{1,10})", re.ASCII | re.DOTALL)


def parent_and_ordinal(pod: Pod) -> tuple[str, int]:
    """Return the set's name and the ordinal in a pod's name, ("", -1) for any other name."""
    match = _NAME.fullmatch(pod.metadata.name)
    if match is None or int(match[2]) >= 2**31:
        return "", -1
    return match[1], int(match[2])


def ordinal_of(pod: Pod) -> int:
    """Return the ordinal of a pod, -1 if it has none."""
    return parent_and_ordinal(pod)[1]


def ordinals(stateful_set: StatefulSet) -> range:
    """Return the ordinals that a set should have."""
    start = stateful_set.spec.ordinals.start if stateful_set.spec.ordinals else 0
    return range(start, start + replicas_of(stateful_set))


def replicas_of(stateful_set: StatefulSet) -> int:
    """Return the desired number of pods."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def is_member(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Return True if a pod's name is that of a pod of the set."""
    return parent_and_ordinal(pod)[0] == stateful_set.metadata.name


def revision_of(pod: Pod) -> str:
    """Return the name of a pod's revision."""
    return pod.metadata.labels.get(REVISION_HASH, "")


def new_pod(stateful_set: StatefulSet, ordinal: int, revision: str) -> Pod:
    """Return a new pod with this ordinal, from the set's template."""
    pod = pod_from_template(stateful_set.spec.template, STATEFUL_SETS, stateful_set)
    pod.metadata.name = f"{stateful_set.metadata.name}-{ordinal}"
    put_identity(stateful_set, pod)
    pod.metadata.labels[REVISION_HASH] = revision
    pod.spec = msgspec.structs.replace(pod.spec, hostname=pod.metadata.name, subdomain=stateful_set.spec.service_name)
    put_storage(stateful_set, pod)
    return pod


def has_identity(pod: Pod) -> bool:
    """Return True if a pod has the label with its name."""
    return pod.metadata.labels.get(_POD_NAME) == pod.metadata.name


def put_identity(stateful_set: StatefulSet, pod: Pod) -> None:
    """Set the labels with a pod's name and ordinal."""
    own = {_POD_NAME: pod.metadata.name, _POD_INDEX: str(ordinal_of(pod))}
    pod.metadata.namespace = stateful_set.metadata.namespace
    pod.metadata.labels = {**pod.metadata.labels, **own}


def claim_name(stateful_set: StatefulSet, template: PersistentVolumeClaim, ordinal: int) -> str:
    """Return the name of the claim of a template and an ordinal."""
    return f"{template.metadata.name}-{stateful_set.metadata.name}-{ordinal}"


def claims_of(stateful_set: StatefulSet, ordinal: int) -> dict[str, PersistentVolumeClaim]:
    """Return the claims of an ordinal, by the names of their templates."""
    selector = stateful_set.spec.selector
    claims = {}
    for template in stateful_set.spec.volume_claim_templates:
        claim = deep_copy(template)
        claim.kind = claim.api_version = ""
        claim.metadata.name = claim_name(stateful_set, template, ordinal)
        claim.metadata.namespace = stateful_set.metadata.namespace
        claim.metadata.labels = {**claim.metadata.labels, **(selector.match_labels if selector else {})}
        claims[template.metadata.name] = claim
    return claims


def has_storage(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Return True if a pod uses the claims of its ordinal."""
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
    """Set the volumes of a pod that use the claims of its ordinal; they replace volumes of the same names."""
    ordinal, templates = ordinal_of(pod), stateful_set.spec.volume_claim_templates
    own = []
    for each in templates:
        source = PersistentVolumeClaimVolumeSource(claim_name=claim_name(stateful_set, each, ordinal))
        own.append(Volume(name=each.metadata.name, persistent_volume_claim=source))
    names = {each.name for each in own}
    others = [each for each in pod.spec.volumes if each.name not in names]
    pod.spec = msgspec.structs.replace(pod.spec, volumes=[*own, *others])
