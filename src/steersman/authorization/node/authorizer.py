"""Node authorizer: a kubelet may read the objects that the pods on its node need, and no others of these kinds.

Follows kubernetes `plugin/pkg/auth/authorizer/node`. NodeRestriction further restricts what a node may write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from steersman.api.rbac.v1 import PolicyRule
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, ResolvedRules, Verdict
from steersman.authorization.node.graph import Graph
from steersman.authorization.node.references import CLAIM, CONFIG_MAP, RESOURCE_CLAIM, SECRET, SERVICE_ACCOUNT
from steersman.authorization.node_identity import PREFIX, node_name
from steersman.authorization.rule_index import RuleIndex
from steersman.machinery.errors.field import quote
from steersman.machinery.selectors.fields import EQUALS

_LEASES: Final = "kube-node-lease"
_READ: Final = ("get", "list", "watch")
_OF_ITS_OWN: Final = ("get", "create", "update", "patch", "delete")

_ALLOWED: Final = Verdict(Decision.ALLOW)
_NO_OPINION: Final = Verdict(Decision.NO_OPINION)
_NO_RULES: Final = ResolvedRules()
_UNKNOWN_RULES: Final = ResolvedRules(incomplete=True, error="node authorizer does not support user rule resolution")

_Related = Callable[[str, str, str], bool]
"""Function (node, namespace, name) that returns True if the object is related to the node."""


class NodeAuthorizer:
    """Authorizes requests of nodes by a graph, and by `rules`, which are the same for all nodes."""

    def __init__(self, graph: Graph, rules: Iterable[PolicyRule]) -> None:
        self._rules = RuleIndex(rules)
        self._related = _relations(graph)
        self._checks: Mapping[tuple[str, str], Callable[[str, Attributes], Verdict]] = {
            ("", "secrets"): self._read_one,
            ("", "configmaps"): self._read_one,
            ("", "persistentvolumeclaims"): self._claim,
            ("", "persistentvolumes"): self._get_one,
            ("", "serviceaccounts"): self._service_account,
            ("", "nodes"): _node,
            ("", "pods"): self._pod,
            ("resource.k8s.io", "resourceclaims"): self._get_one,
            ("resource.k8s.io", "resourceslices"): self._slice,
            ("storage.k8s.io", "volumeattachments"): self._get_one,
            ("storage.k8s.io", "csinodes"): _csi_node,
            ("coordination.k8s.io", "leases"): _lease,
            ("certificates.k8s.io", "podcertificaterequests"): lambda node, attributes: _NO_OPINION,
        }

    def authorize(self, attributes: Attributes) -> Verdict:
        """Decide about an action, see Authorizer."""
        if not attributes.user.name.startswith(PREFIX):  # fast rejection of most requests by other users
            return _NO_OPINION
        node = node_name(attributes.user)
        if node is None:
            return _NO_OPINION
        if not node:
            return _undecided(f"unknown node for user {quote(attributes.user.name)}")
        action = attributes.action
        if attributes.path is None:
            judge = self._checks.get((action.group, action.resource))
            if judge is not None:
                return judge(node, attributes)
            return _ALLOWED if self._rule_allows(attributes) else _NO_OPINION
        return _ALLOWED if any(True for _ in self._rules.on_url(action.verb, attributes.path)) else _NO_OPINION

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        """Return no rules; for nodes the result is marked as incomplete."""
        return _NO_RULES if node_name(user) is None else _UNKNOWN_RULES

    def _rule_allows(self, attributes: Attributes) -> bool:
        action = attributes.action
        resource, pattern = action.resource, ""
        if action.subresource:
            resource, pattern = f"{resource}/{action.subresource}", f"*/{action.subresource}"
        return None in self._rules.on_resource(action.verb, action.group, resource, pattern)

    def _related_to(self, node: str, attributes: Attributes) -> Verdict:
        """Allow an object that is related to the node."""
        action = attributes.action
        if not action.name:
            return _undecided("No Object name found")
        if self._related[action.resource](node, action.namespace, action.name):
            return _ALLOWED
        return _unrelated(node)

    def _get_one(self, node: str, attributes: Attributes) -> Verdict:
        action = attributes.action
        if action.verb != "get":
            return _undecided("can only get individual resources of this type")
        if action.subresource:
            return _undecided("cannot get subresource")
        return self._related_to(node, attributes)

    def _read_one(self, node: str, attributes: Attributes) -> Verdict:
        action = attributes.action
        if action.verb not in _READ:
            return _undecided("can only read resources of this type")
        if action.subresource:
            return _undecided("cannot read subresource")
        if not action.namespace:
            return _undecided("can only read namespaced object of this type")
        return self._related_to(node, attributes)

    def _claim(self, node: str, attributes: Attributes) -> Verdict:
        if attributes.action.subresource != "status":
            return self._get_one(node, attributes)
        if attributes.action.verb not in ("update", "patch"):
            return _undecided("can only get/update/patch this type")
        return self._related_to(node, attributes)

    def _service_account(self, node: str, attributes: Attributes) -> Verdict:
        action = attributes.action
        if action.verb == "get" and not action.subresource:
            return self._read_one(node, attributes)
        if action.verb != "create" or not action.name:
            return _undecided("can only create tokens for individual service accounts")
        if action.subresource != "token":
            return _undecided("can only create token subresource of serviceaccount")
        return self._related_to(node, attributes)

    def _slice(self, node: str, attributes: Attributes) -> Verdict:
        action = attributes.action
        if action.subresource:
            return _undecided("cannot authorize ResourceSlice subresources")
        if action.verb == "create":
            return _ALLOWED  # NodeRestriction checks the object
        if action.verb in ("get", "update", "patch", "delete"):
            return self._related_to(node, attributes)
        if action.verb in ("watch", "list", "deletecollection"):
            if _selects(attributes, "spec.nodeName", node):
                return _ALLOWED
            return _undecided("can only list/watch/deletecollection resourceslices with nodeName field selector")
        return _undecided(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, "
            "delete, deletecollection"
        )

    def _pod(self, node: str, attributes: Attributes) -> Verdict:
        action = attributes.action
        verb, subresource = action.verb, action.subresource
        if not subresource:
            if verb == "get":
                return self._get_one(node, attributes)
            if verb in ("list", "watch"):
                if _selects(attributes, "spec.nodeName", node):
                    return _ALLOWED
                if action.name:
                    return self._related_to(node, attributes)
                return _undecided("can only list/watch pods with spec.nodeName field selector")
        allowed = {"": ("create", "delete"), "status": ("update", "patch"), "eviction": ("create",)}
        return _ALLOWED if verb in allowed.get(subresource, ()) else _NO_OPINION  # NodeRestriction checks the rest


def _relations(graph: Graph) -> Mapping[str, _Related]:
    """Return a function per resource that returns True if a node is related to an object.

    The functions of cluster-scoped resources return False if a namespace is given.
    """

    def of_kind(kind: str) -> _Related:
        return lambda node, namespace, name: graph.names(node, kind, namespace, name)

    def of_cluster(related: Callable[[str, str], bool]) -> _Related:
        return lambda node, namespace, name: not namespace and related(node, name)

    return {
        "secrets": of_kind(SECRET),
        "configmaps": of_kind(CONFIG_MAP),
        "persistentvolumeclaims": of_kind(CLAIM),
        "serviceaccounts": of_kind(SERVICE_ACCOUNT),
        "resourceclaims": of_kind(RESOURCE_CLAIM),
        "pods": graph.runs,
        "persistentvolumes": of_cluster(graph.uses_volume),
        "volumeattachments": of_cluster(graph.is_attached),
        "resourceslices": of_cluster(graph.has_slice),
    }


def _node(node: str, attributes: Attributes) -> Verdict:
    action = attributes.action
    if not action.subresource:
        if action.verb in ("create", "update", "patch"):
            return _ALLOWED  # NodeRestriction checks the rest
        if action.verb in _READ:
            if action.name == node:
                return _ALLOWED
            which = f"read '{action.name}'" if action.name else "read all nodes"
            return _undecided(f"node '{node}' cannot {which}, only its own Node object")
    if action.subresource == "status" and action.verb in ("update", "patch"):
        return _ALLOWED
    return _NO_OPINION


def _lease(node: str, attributes: Attributes) -> Verdict:
    action = attributes.action
    if action.verb not in _OF_ITS_OWN:
        return _undecided("can only get, create, update, patch, or delete a node lease")
    if action.namespace != _LEASES:
        return _undecided(f"can only access leases in the {quote(_LEASES)} system namespace")
    if action.verb != "create" and action.name != node:
        return _undecided("can only access node lease with the same name as the requesting node")
    return _ALLOWED


def _csi_node(node: str, attributes: Attributes) -> Verdict:
    action = attributes.action
    if action.verb not in _OF_ITS_OWN:
        return _undecided("can only get, create, update, patch, or delete a CSINode")
    if action.subresource:
        return _undecided("cannot authorize CSINode subresources")
    if action.verb != "create" and action.name != node:
        return _undecided("can only access CSINode with the same name as the requesting node")
    return _ALLOWED


def _selects(attributes: Attributes, field: str, node: str) -> bool:
    """Return True if the field selector has the requirement `field` = `node`."""
    return any(
        each.field == field and each.operator == EQUALS and each.value == node for each in attributes.selectors.fields
    )


def _undecided(reason: str) -> Verdict:
    return Verdict(Decision.NO_OPINION, reason)


def _unrelated(node: str) -> Verdict:
    return _undecided(f"no relationship found between node '{node}' and this object")
