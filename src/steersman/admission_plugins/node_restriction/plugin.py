"""NodeRestriction: a kubelet may only write its own Node and objects that belong to that node.

Follows kubernetes `plugin/pkg/admission/noderestriction`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from steersman.admission.interface import CREATE, DELETE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration, PluginDependencies
from steersman.admission_plugins.node_restriction.nodes import forbidden_in_new_node, forbidden_in_node
from steersman.admission_plugins.node_restriction.pods import (
    HostedPod,
    forbidden_in_mirror_pod,
    forbidden_in_spec_of_mirror_pod,
    forbidden_in_status,
    hosted_pod,
)
from steersman.admission_plugins.node_restriction.requests import forbidden_in_request
from steersman.admission_plugins.node_restriction.tokens import Audiences, forbidden_in_token_request
from steersman.authorization.node_identity import node_name
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import not_found
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.objects import Objects, Reading
from steersman.work.offloading import offload

_PODS: Final = GroupResource("", "pods")
_NODES: Final = GroupResource("", "nodes")
_CLAIMS: Final = GroupResource("", "persistentvolumeclaims")
_ACCOUNTS: Final = GroupResource("", "serviceaccounts")
_LEASES: Final = GroupResource("coordination.k8s.io", "leases")
_CSI_NODES: Final = GroupResource("storage.k8s.io", "csinodes")
_SLICES: Final = GroupResource("resource.k8s.io", "resourceslices")
_REQUESTS: Final = GroupResource("certificates.k8s.io", "certificatesigningrequests")
_POD_LISTER: Final = GroupResource("", "pod")
"""Resource in a 404 of upstream's pod lister, in the singular. The node lister does the same."""
_NODE_LISTER: Final = GroupResource("", "node")

_LEASE_NAMESPACE: Final = "kube-node-lease"
_POD: Final[Reading[HostedPod]] = Reading(hosted_pod, "metadata.uid", "spec.nodeName")
_UID: Final[Reading[str]] = Reading(lambda node: str(node.metadata.uid), "metadata.uid")

_Check = Callable[[str, Attributes], Awaitable[None]]
"""Function that checks a write of a node. Raises StatusError to refuse it."""


class NodeRestriction(Plugin):
    """Checks the writes of nodes to any resource. A node user without a node name may write nothing.

    `changed_claim` returns the difference of two claims in upstream's internal form.
    """

    name = "NodeRestriction"
    operations = frozenset({CREATE, UPDATE, DELETE})
    mutates = True  # it changes nothing, but runs among the mutating plugins
    changed_fields = ()

    def __init__(
        self, pods: Objects, nodes: Objects, audiences: Audiences, changed_claim: Callable[[Any, Any], str]
    ) -> None:
        self._pods = pods
        self._nodes = nodes
        self._audiences = audiences
        self._changed_claim = changed_claim
        self._checks: Mapping[tuple[str, str], _Check] = {
            (_PODS.group, _PODS.resource): self._pod,
            (_NODES.group, _NODES.resource): self._node,
            (_CLAIMS.group, _CLAIMS.resource): self._claim,
            (_ACCOUNTS.group, _ACCOUNTS.resource): self._token,
            (_LEASES.group, _LEASES.resource): self._lease,
            (_CSI_NODES.group, _CSI_NODES.resource): self._csi_node,
            (_SLICES.group, _SLICES.resource): self._slice,
            (_REQUESTS.group, _REQUESTS.resource): self._request,
        }

    async def admit(self, attributes: Attributes) -> None:
        """Raise StatusError 403 for a write that a node may not make, 404 if an object that it depends on is missing."""
        node = node_name(attributes.user)
        if node is None:
            return
        if not node:
            raise attributes.forbid(f"could not determine node from user {quote(attributes.user.name)}")
        judge = self._checks.get((attributes.action.group, attributes.action.resource))
        if judge is not None:
            await judge(node, attributes)

    async def _pod(self, node: str, attributes: Attributes) -> None:
        subresource, operation = attributes.action.subresource, attributes.operation
        if subresource == "status":
            if operation != UPDATE:
                raise attributes.forbid(f"unexpected operation {quote(operation)}")
            _refuse_if(attributes, forbidden_in_status(node, attributes.old, attributes.obj))
        elif subresource == "eviction":
            await self._eviction(node, attributes)
        elif subresource:
            raise attributes.forbid(
                f"unexpected pod subresource {quote(subresource)}, only 'status' and 'eviction' are allowed"
            )
        elif operation == CREATE:
            _refuse_if(attributes, forbidden_in_mirror_pod(node, attributes.obj, self._uid))
            _refuse_if(attributes, await offload(forbidden_in_spec_of_mirror_pod, node, attributes.obj))
        elif operation == DELETE:
            if self._read_pod(attributes, attributes.name).node != node:
                raise attributes.forbid(f"node {quote(node)} can only delete pods with spec.nodeName set to itself")
        else:
            raise attributes.forbid(
                f"unexpected operation {quote(operation)}, node {quote(node)} can only create and delete mirror pods"
            )

    async def _eviction(self, node: str, attributes: Attributes) -> None:
        if attributes.operation != CREATE:
            raise attributes.forbid(f"unexpected operation {attributes.operation}")
        name = attributes.name or attributes.obj.metadata.name
        if not name:
            raise attributes.forbid("could not determine pod from request data")
        if self._read_pod(attributes, name).node != node:
            raise attributes.forbid(f"node {node} can only evict pods with spec.nodeName set to itself")

    def _read_pod(self, attributes: Attributes, name: str) -> HostedPod:
        """Return a pod's uid and node. Raises StatusError 404."""
        pod = self._pods.read_cached(attributes.action.namespace, name, _POD)
        if pod is None:
            raise not_found(_POD_LISTER, name)
        return pod

    def _uid(self, node: str) -> str:
        """Return the uid of a Node. Raises StatusError 404."""
        uid = self._nodes.read_cached("", node, _UID)
        if uid is None:
            raise not_found(_NODE_LISTER, node)
        return uid

    async def _node(self, node: str, attributes: Attributes) -> None:
        if attributes.name != node:
            raise attributes.forbid(f"node {quote(node)} is not allowed to modify node {quote(attributes.name)}")
        if attributes.operation == CREATE:
            _refuse_if(attributes, await offload(forbidden_in_new_node, node, attributes.obj))
        elif attributes.operation == UPDATE:
            _refuse_if(attributes, await offload(forbidden_in_node, node, attributes.old, attributes.obj))

    async def _claim(self, node: str, attributes: Attributes) -> None:
        if attributes.action.subresource != "status":
            raise attributes.forbid("may only update PVC status")
        if attributes.operation != UPDATE:
            raise attributes.forbid(f"unexpected operation {quote(attributes.operation)}")
        old, new = _without_progress(attributes.old), _without_progress(attributes.obj)
        if old != new:
            raise attributes.forbid(
                f"node {quote(node)} is not allowed to update fields other than status.quantity and "
                f"status.conditions: {self._changed_claim(old, new)}"
            )

    async def _token(self, node: str, attributes: Attributes) -> None:
        if attributes.operation != CREATE or attributes.action.subresource != "token":
            return
        request = attributes.obj
        reference = request.spec.bound_object_ref
        _refuse_if(attributes, forbidden_in_token_request(reference))
        pod = await self._pods.get_cached(attributes.action.namespace, reference.name)
        if pod is None:
            raise not_found(_POD_LISTER, reference.name)
        if reference.uid != pod.metadata.uid:
            raise attributes.forbid(
                f"the UID in the bound object reference ({reference.uid}) does not match the UID in record. The object "
                "might have been deleted and then recreated"
            )
        if pod.spec.node_name != node:
            raise attributes.forbid("node requested token bound to a pod scheduled on a different node")
        _refuse_if(attributes, await self._audiences.forbidden(request.spec.audiences or (), pod, attributes))

    async def _lease(self, node: str, attributes: Attributes) -> None:
        if attributes.action.namespace != _LEASE_NAMESPACE:
            raise attributes.forbid(f"can only access leases in the {quote(_LEASE_NAMESPACE)} system namespace")
        if _name_of(attributes) != node:
            raise attributes.forbid("can only access node lease with the same name as the requesting node")

    async def _csi_node(self, node: str, attributes: Attributes) -> None:
        if _name_of(attributes) != node:
            raise attributes.forbid("can only access CSINode with the same name as the requesting node")

    async def _slice(self, node: str, attributes: Attributes) -> None:
        if attributes.operation == UPDATE:
            return
        found, done = (attributes.obj, "create") if attributes.operation == CREATE else (attributes.old, "delete")
        if found is None or found.spec.node_name != node:
            raise attributes.forbid(f"can only {done} ResourceSlice with the same NodeName as the requesting node")

    async def _request(self, node: str, attributes: Attributes) -> None:
        if attributes.operation == CREATE:
            _refuse_if(attributes, await offload(forbidden_in_request, node, attributes.obj))


def _refuse_if(attributes: Attributes, why: str) -> None:
    """Raise StatusError 403 if the reason is not empty."""
    if why:
        raise attributes.forbid(why)


def _name_of(attributes: Attributes) -> str:
    """Return the name of the object; a create has it only in the object itself."""
    return str(attributes.obj.metadata.name) if attributes.operation == CREATE else attributes.name


def _without_progress(claim: Any) -> Any:
    """Return a copy of a claim without the fields that kubelets may change."""
    status = replace(claim.status, capacity={}, conditions=[], allocated_resource_statuses={}, allocated_resources={})
    return replace(claim, metadata=replace(claim.metadata, resource_version="", managed_fields=[]), status=status)


def _make(dependencies: PluginDependencies) -> NodeRestriction:
    audiences = Audiences(
        dependencies.authorizer,
        dependencies.objects("", "persistentvolumeclaims"),
        dependencies.objects("", "persistentvolumes"),
        dependencies.objects("storage.k8s.io", "csidrivers"),
    )
    return NodeRestriction(
        dependencies.objects("", "pods"), dependencies.objects("", "nodes"), audiences, dependencies.difference
    )


NODE_RESTRICTION: Final = Declaration(NodeRestriction, on_by_default=False, make=_make)
