"""Which nodes have to do with which objects: the pods bound to a node, what these name, and what that leads to.

Follows kubernetes `plugin/pkg/auth/authorizer/node` graph.go. Every question takes one look, whatever there is: of each
object it is counted how many pods on each node name it, and of each secret of volumes how many volumes of claims that
pods on the node use need it.
"""

from __future__ import annotations

from typing import Final

from steersman.authorization.node.references import CLAIM, SECRET, PodReferences, Reference, VolumeReferences
from steersman.work.bounded_cache import BoundedCache

_SHARED: Final = 4_096
"""Lists of references that are remembered, so that pods of one template share theirs."""
_LONGEST_SHARED: Final = 64

Key = tuple[str, str]
"""Namespace and name."""
_Counts = dict[str, int]
"""By node."""

_NO_PODS: Final[dict[str, PodReferences]] = {}


class Graph:
    """Kept up by the `put_` methods (None: deleted); asked by the others whether a node may see an object."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, PodReferences]] = {}
        """By namespace and name."""
        self._users: dict[str, dict[Reference, _Counts]] = {}
        """By namespace, then kind and name, how many pods of each node name an object."""
        self._volumes: dict[str, VolumeReferences] = {}
        self._volumes_of: dict[Key, dict[str, None]] = {}
        """The volumes for each claim; an orderly set."""
        self._through_volumes: dict[Key, _Counts] = {}
        """Of secrets, how many volumes that a node uses need them."""
        self._attachments: dict[str, str] = {}
        self._slices: dict[str, str] = {}
        self._shared: BoundedCache[tuple[Reference, ...], tuple[Reference, ...]] = BoundedCache(_SHARED)

    # What there is

    def put_pod(self, namespace: str, name: str, pod: PodReferences | None) -> None:
        """Sets what a pod leads to; one without a node leads to nothing."""
        pods = self._pods.get(namespace, _NO_PODS)
        before = pods.get(name)
        if pod is not None and not pod.node:
            pod = None
        if pod == before:
            return
        if pod is None:
            del pods[name]
            if not pods:
                del self._pods[namespace]
        else:
            pod = pod._replace(references=self._as_others(pod.references))
            self._pods.setdefault(namespace, {})[name] = pod
            if pod.references:
                self._use(namespace, pod)  # first, so that what stays is not let go of in between
        if before is not None and before.references:
            self._let_go(namespace, before)

    def put_volume(self, name: str, volume: VolumeReferences | None) -> None:
        """Sets what a PersistentVolume leads to; one without a claim leads to nothing."""
        before = self._volumes.get(name)
        if volume is not None and volume.claim is None:
            volume = None
        if volume == before:
            return
        if before is not None:
            assert before.claim is not None
            for node in self._nodes_with(before.claim):
                self._need(before, node, -1)
            volumes = self._volumes_of[before.claim]
            del volumes[name]
            if not volumes:
                del self._volumes_of[before.claim]
            del self._volumes[name]
        if volume is not None:
            assert volume.claim is not None
            self._volumes[name] = volume
            self._volumes_of.setdefault(volume.claim, {})[name] = None
            for node in self._nodes_with(volume.claim):
                self._need(volume, node, 1)

    def put_attachment(self, name: str, node: str) -> None:
        """Sets which node a volume is attached to; "" for none."""
        _put(self._attachments, name, node)

    def put_slice(self, name: str, node: str) -> None:
        """Sets which node the devices of a ResourceSlice are on; "" for none."""
        _put(self._slices, name, node)

    def _as_others(self, references: tuple[Reference, ...]) -> tuple[Reference, ...]:
        """The same, shared with pods that are alike."""
        if len(references) > _LONGEST_SHARED:
            return references
        known = self._shared[references]
        if known is None:
            known = references
            self._shared.keep(known, known)
        return known

    def _use(self, namespace: str, pod: PodReferences) -> None:
        node = pod.node
        users = self._users.get(namespace)
        if users is None:
            users = self._users[namespace] = {}
        for reference in pod.references:
            counts = users.get(reference)
            if counts is None:
                users[reference] = {node: 1}
            elif node in counts:
                counts[node] += 1
                continue
            else:
                counts[node] = 1
            if reference[0] == CLAIM:
                self._need_volumes((namespace, reference[1]), node, 1)

    def _let_go(self, namespace: str, pod: PodReferences) -> None:
        node = pod.node
        users = self._users[namespace]
        for reference in pod.references:
            counts = users[reference]
            if counts[node] > 1:
                counts[node] -= 1
                continue
            del counts[node]
            if not counts:
                del users[reference]
            if reference[0] == CLAIM:
                self._need_volumes((namespace, reference[1]), node, -1)
        if not users:
            del self._users[namespace]

    def _need_volumes(self, claim: Key, node: str, change: int) -> None:
        for volume in self._volumes_of.get(claim, ()):
            self._need(self._volumes[volume], node, change)

    def _need(self, volume: VolumeReferences, node: str, change: int) -> None:
        for secret in volume.secrets:
            counts = self._through_volumes.setdefault(secret, {})
            counts[node] = counts.get(node, 0) + change
            if not counts[node]:
                del counts[node]
                if not counts:
                    del self._through_volumes[secret]

    def _nodes_with(self, claim: Key) -> _Counts:
        namespace, name = claim
        return self._users.get(namespace, {}).get((CLAIM, name), {})

    # Questions

    def pod(self, namespace: str, name: str) -> PodReferences | None:
        """What a pod leads to; None for nothing."""
        return self._pods.get(namespace, _NO_PODS).get(name)

    def names(self, node: str, kind: str, namespace: str, name: str) -> bool:
        """Whether a pod on the node names an object, or a secret is needed for a volume of one."""
        counts = self._users.get(namespace, {}).get((kind, name))
        if counts is not None and node in counts:
            return True
        return kind == SECRET and node in self._through_volumes.get((namespace, name), ())

    def runs(self, node: str, namespace: str, name: str) -> bool:
        """Whether a pod is bound to the node."""
        pod = self.pod(namespace, name)
        return pod is not None and pod.node == node

    def uses_volume(self, node: str, name: str) -> bool:
        """Whether a pod on the node uses the claim that a volume is for."""
        volume = self._volumes.get(name)
        return volume is not None and volume.claim is not None and node in self._nodes_with(volume.claim)

    def is_attached(self, node: str, name: str) -> bool:
        """Whether a VolumeAttachment is about the node."""
        return self._attachments.get(name) == node

    def has_slice(self, node: str, name: str) -> bool:
        """Whether a ResourceSlice is about the node."""
        return self._slices.get(name) == node


def _put(by_name: dict[str, str], name: str, node: str) -> None:
    if node:
        by_name[name] = node
    else:
        by_name.pop(name, None)
