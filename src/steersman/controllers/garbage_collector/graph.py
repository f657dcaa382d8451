"""Graph of the owners of all objects, and the objects that a change requires to be deleted or orphaned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from steersman.api.meta.v1 import ObjectMeta, OwnerReference, PartialObjectMetadata
from steersman.client.api_resource import APIResource

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
"""Finalizers of objects that wait for the deletion, or for the orphaning, of their dependents."""


class Node:
    """Ownership of an object.

    An object that is not `observed` is only known as an owner in references. If it is also `absent`, the server does
    not have it. It stays in the graph for its dependents, as it comes back when a snapshot is restored.
    """

    __slots__ = (
        "absent",
        "api_version",
        "being_deleted",
        "blocking",
        "deleting_dependents",
        "dependents",
        "kind",
        "name",
        "namespace",
        "observed",
        "owners",
        "resource",
        "uid",
    )

    def __init__(self, uid: str, api_version: str, kind: str, namespace: str, name: str) -> None:
        self.uid = uid
        self.api_version = api_version
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.resource: APIResource[PartialObjectMetadata] | None = None
        self.owners: Sequence[OwnerReference] = ()
        self.dependents: dict[str, Node] = {}
        self.blocking: dict[str, Node] = {}
        """Dependents that block a foreground deletion of this object."""
        self.being_deleted = False
        self.deleting_dependents = False
        self.observed = False
        self.absent = False

    def __repr__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name} {self.uid}"

    def matches(self, reference: OwnerReference, namespace: str) -> bool:
        """Return True if a reference in a namespace matches this object by kind, name and namespace, and not just by
        uid.
        """
        same = (reference.name, reference.kind) == (self.name, self.kind)
        return (
            same
            and group_of(reference.api_version) == group_of(self.api_version)
            and (not self.namespace or self.namespace == namespace)
        )


def group_of(api_version: str) -> str:
    """Return the group of an `apiVersion`."""
    return api_version.rpartition("/")[0]


def is_deleting_dependents(metadata: ObjectMeta) -> bool:
    """Return True if an object is being deleted in the foreground."""
    return metadata.deletion_timestamp is not None and FOREGROUND in metadata.finalizers


def _is_orphaning(metadata: ObjectMeta) -> bool:
    return metadata.deletion_timestamp is not None and ORPHAN in metadata.finalizers


class Graph:
    """All objects by uid.

    `attempt_to_delete` and `attempt_to_orphan` are called with the uids of objects to process. `invalid_owner` is
    called with an object and its reference to an owner in another namespace.
    """

    def __init__(
        self,
        attempt_to_delete: Callable[[str], None],
        attempt_to_orphan: Callable[[str], None],
        invalid_owner: Callable[[Node, OwnerReference], None],
    ) -> None:
        self._nodes: dict[str, Node] = {}
        self._attempt_to_delete = attempt_to_delete
        self._attempt_to_orphan = attempt_to_orphan
        self._invalid_owner = invalid_owner

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> Node | None:
        """Return the object with a uid, None if it is unknown."""
        return self._nodes.get(uid)

    def put(self, resource: APIResource[PartialObjectMetadata], metadata: ObjectMeta) -> None:
        """Add or update an object."""
        for _ in self.put_in_steps(resource, metadata):
            pass

    def put_in_steps(self, resource: APIResource[PartialObjectMetadata], metadata: ObjectMeta) -> Iterator[None]:
        """Add or update an object in steps, one for each owner. Between steps some owners do not have the change yet."""
        node = self._nodes.get(metadata.uid)
        orphaning = deleting = False
        if node is None or not node.observed:
            node = self._observe(node, resource, metadata)
            yield from self._add_to_owners(node, metadata.owner_references)
            orphaning, deleting = _is_orphaning(metadata), is_deleting_dependents(metadata)
        else:
            yield from self._change_owners(node, metadata.owner_references)
            orphaning = _is_orphaning(metadata) and not node.being_deleted
            deleting = is_deleting_dependents(metadata) and not node.deleting_dependents
        node.being_deleted = metadata.deletion_timestamp is not None
        node.deleting_dependents = node.deleting_dependents and is_deleting_dependents(metadata)
        if orphaning:
            self._attempt_to_orphan(node.uid)
        elif deleting:
            node.deleting_dependents = True
            for dependent in node.dependents:
                self._attempt_to_delete(dependent)
            self._attempt_to_delete(node.uid)

    def _observe(self, former: Node | None, resource: APIResource[PartialObjectMetadata], metadata: ObjectMeta) -> Node:
        node = Node(metadata.uid, resource.api_version, resource.kind, metadata.namespace, metadata.name)
        node.resource, node.observed = resource, True
        node.owners = metadata.owner_references
        self._nodes[node.uid] = node
        if former is not None:
            node.dependents.update(former.dependents)
            node.blocking.update(former.blocking)
        for dependent in node.dependents.values():
            self._check_references(node, dependent)
        return node

    def _check_references(self, owner: Node, dependent: Node) -> None:
        for reference in dependent.owners:
            if reference.uid == owner.uid:
                self._check_reference(owner, dependent, reference)

    def _check_reference(self, owner: Node, dependent: Node, reference: OwnerReference) -> None:
        """Queue a dependent whose reference has its owner's uid but another name or namespace."""
        if not owner.matches(reference, dependent.namespace):
            self._attempt_to_delete(dependent.uid)
            if owner.namespace and owner.namespace != dependent.namespace:
                self._invalid_owner(dependent, reference)

    def _add_to_owners(self, node: Node, references: Sequence[OwnerReference]) -> Iterator[None]:
        for reference in references:
            owner = self._nodes.get(reference.uid)
            if owner is None:
                owner = Node(reference.uid, reference.api_version, reference.kind, node.namespace, reference.name)
                self._nodes[reference.uid] = owner
                self._attempt_to_delete(reference.uid)
            owner.dependents[node.uid] = node
            if reference.block_owner_deletion:
                owner.blocking[node.uid] = node
            if owner.observed:
                self._check_reference(owner, node, reference)
            elif owner.absent or not owner.matches(reference, node.namespace):
                self._attempt_to_delete(node.uid)
            yield

    def _change_owners(self, node: Node, references: Sequence[OwnerReference]) -> Iterator[None]:
        if references == node.owners:
            return
        before, after = ({each.uid: each for each in some} for some in (node.owners, references))
        node.owners = references
        yield from self._add_to_owners(node, [each for uid, each in after.items() if before.get(uid) != each])
        blocked = {each.uid for each in references if each.block_owner_deletion}
        for uid, reference in before.items():
            now = after.get(uid)
            owner = self._nodes.get(uid)
            if owner is None:
                continue
            if now is None:
                self._remove_dependent(owner, node)
            elif uid not in blocked:
                owner.blocking.pop(node.uid, None)
            if reference.block_owner_deletion and (now is None or not now.block_owner_deletion):
                self._attempt_to_delete(uid)

    def _remove_dependent(self, owner: Node, node: Node) -> None:
        owner.dependents.pop(node.uid, None)
        owner.blocking.pop(node.uid, None)
        if not owner.observed and not owner.dependents:
            self._nodes.pop(owner.uid, None)

    def remove(self, uid: str) -> None:
        """Remove an object that was deleted, or an owner that never existed. Its dependents are to be deleted."""
        for _ in self.remove_in_steps(uid):
            pass

    def remove_in_steps(self, uid: str) -> Iterator[None]:
        """Remove an object in steps, one for each owner."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        if node.dependents:
            self._nodes[uid] = self._absent(node)
        for dependent in node.dependents:
            self._attempt_to_delete(dependent)
        for reference in node.owners:
            owner = self._nodes.get(reference.uid)
            if owner is not None:
                self._remove_dependent(owner, node)
                if owner.deleting_dependents:
                    self._attempt_to_delete(owner.uid)
            yield

    def _absent(self, former: Node) -> Node:
        node = Node(former.uid, former.api_version, former.kind, former.namespace, former.name)
        node.dependents, node.blocking, node.absent = former.dependents, former.blocking, True
        return node
