"""Order in which documents are judged: what others depend on comes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steersman.check.documents import Document

_FIRST: Final = (
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "IngressClass",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ServiceAccount",
    "ResourceQuota",
    "LimitRange",
    "ConfigMap",
    "Secret",
)
_POLICIES: Final = (
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
_VOLUMES: Final = ("PersistentVolume", "PersistentVolumeClaim", "Service")
_LAST: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService")
"""Kinds that send requests elsewhere: nothing is judged after them."""
_OTHERS: Final = ("",)
_RANK: Final = {kind: rank for rank, kind in enumerate((*_FIRST, *_POLICIES, *_VOLUMES, *_OTHERS, *_LAST))}


def in_order(documents: Sequence[Document], parameters: frozenset[tuple[str, str]]) -> list[Document]:
    """Return documents in the order in which they depend on each other; equal ones in the order of the files.

    `parameters` are kinds (API version, kind) of which policies read objects: these come before policies.
    """

    def rank(each: Document) -> int:
        if each.kind not in _RANK and (each.api_version, each.kind) in parameters:
            return _RANK[_POLICIES[0]]
        return _RANK.get(each.kind, _RANK[""])

    return sorted(documents, key=rank)
