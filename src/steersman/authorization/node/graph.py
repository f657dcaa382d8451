"""Graph of nodes and objects: the pods bound to each node, the objects these refer to, and the objects behind those.

Follows kubernetes `plugin/pkg/auth/authorizer/node` graph.go. Every query is one dictionary look-up, however many pods
there are. For this the graph counts, for each object, the pods on each node that refer to it; and for each secret of
volumes, the volumes that need it among those whose claims are used on the node.
"""

from __future__ import annotations

from typing import Final

from steersman.authorization.node.references import CLAIM, SECRET, PodReferences, Reference, VolumeReferences
from steersman.work.bounded_cache import BoundedCache

_SHARED: Final = 4_096
"""Limit of cached reference lists. Pods of the same template share one list."""
_LONGEST_SHARED: Final = 64

Key = tuple[str, str]
"""Namespace and name."""
_Counts = dict[str, int]
"""Counts by node."""

_NO_PODS: Final[dict[str, PodReferences]] = {}


class Graph:
    """The graph of nodes and objects. The `put_` methods update it (None: deleted); the other methods query it."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, PodReferences]] = {}
        """Pods by namespace and name."""
        self._users: dict[str, dict[Reference, _Counts]] = {}
        """Per namespace, by (kind, name) of an object: the number of pods that refer to it on each node."""
        self._volumes: dict[str, VolumeReferences] = {}
        self._volumes_of: dict[Key, dict[str, None]] = {}
        """Names of the volumes of each claim; a dict used as an ordered set."""
        self._through_volumes: dict[Key, _Counts] = {}
        """For each secret, the number of volumes in use on each node that need it."""
        self._attachments: dict[str, str] = {}
        self._slices: dict[str, str] = {}
        self._shared: BoundedCache[tuple[Reference, ...], tuple[Reference, ...]] = BoundedCache(_SHARED)

    # Updates

    def put_pod(self, namespace: str, name: str, pod: PodReferences | None) -> None:
        """Set the references of a pod. A pod without a node has no references."""
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
                # before the old pod is removed, so that common references do not drop to zero in between
                self._add_references(namespace, pod)
        if before is not None and before.references:
            self._remove_references(namespace, before)

    def put_volume(self, name: str, volume: VolumeReferences | None) -> None:
        """Set the references of a PersistentVolume. A volume without a claim has no references."""
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
        """Set the node of a VolumeAttachment; "" for none."""
        _put(self._attachments, name, node)

    def put_slice(self, name: str, node: str) -> None:
        """Set the node of a ResourceSlice's devices; "" for none."""
        _put(self._slices, name, node)

    def _as_others(self, references: tuple[Reference, ...]) -> tuple[Reference, ...]:
        """Return an equal tuple that pods with the same references share."""
        if len(references) > _LONGEST_SHARED:
            return references
        known = self._shared[references]
        if known is None:
            known = references
            self._shared.keep(known, known)
        return known

    def _add_references(self, namespace: str, pod: PodReferences) -> None:
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

    def _remove_references(self, namespace: str, pod: PodReferences) -> None:
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

    # Queries

    def pod(self, namespace: str, name: str) -> PodReferences | None:
        """Return the references of a pod, or None."""
        return self._pods.get(namespace, _NO_PODS).get(name)

    def names(self, node: str, kind: str, namespace: str, name: str) -> bool:
        """Return True if a pod on the node refers to the object, or if a volume of such a pod needs the secret."""
        counts = self._users.get(namespace, {}).get((kind, name))
        if counts is not None and node in counts:
            return True
        return kind == SECRET and node in self._through_volumes.get((namespace, name), ())

    def runs(self, node: str, namespace: str, name: str) -> bool:
        """Return True if the pod is bound to the node."""
        pod = self.pod(namespace, name)
        return pod is not None and pod.node == node

    def uses_volume(self, node: str, name: str) -> bool:
        """Return True if a pod on the node uses the claim of the volume."""
        volume = self._volumes.get(name)
        return volume is not None and volume.claim is not None and node in self._nodes_with(volume.claim)

    def is_attached(self, node: str, name: str) -> bool:
        """Return True if the VolumeAttachment is for the node."""
        return self._attachments.get(name) == node

    def has_slice(self, node: str, name: str) -> bool:
        """Return True if the ResourceSlice is for the node."""
        return self._slices.get(name) == node


def _put(by_name: dict[str, str], name: str, node: str) -> None:
    if node:
        by_name[name] = node
    else:
        by_name.pop(name, None)
