"""Limits of a kubelet's token requests: tokens for pods on its node, with audiences of their volumes or its
permissions.

Follows kubernetes `noderestriction` (validateNodeServiceAccountAudience).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from steersman.admission.interface import Attributes
from steersman.api.authentication.v1 import BoundObjectReference
from steersman.api.core.v1 import PersistentVolumeClaim, Pod, Volume
from steersman.authentication.aggregate import aggregate
from steersman.authorization.attributes import Attributes as Asked
from steersman.authorization.interface import Authorizer, decide
from steersman.machinery.built_in.volumes import claim_name
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError, not_found
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource
from steersman.rest.objects import Objects

_VERB: Final = "request-serviceaccounts-token-audience"
_MIGRATED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "aws_elastic_block_store": "ebs.csi.aws.com",
        "azure_disk": "disk.csi.azure.com",
        "azure_file": "file.csi.azure.com",
        "cinder": "cinder.csi.openstack.org",
        "gce_persistent_disk": "pd.csi.storage.gke.io",
        "portworx_volume": "pxd.portworx.com",
        "vsphere_volume": "csi.vsphere.vmware.com",
    }
)
"""CSI drivers that replace in-tree volume sources."""


def forbidden_in_token_request(reference: BoundObjectReference | None) -> str:
    """Return the reason why a node may not request a token that is bound to this object; "" if it may."""
    if reference is None or (reference.api_version, reference.kind) != ("v1", "Pod") or not reference.name:
        return "node requested token not bound to a pod"
    return "" if reference.uid else "node requested token with a pod binding without a uid"


class Audiences:
    """Checks the audiences of requested tokens."""

    def __init__(self, authorizer: Authorizer, claims: Objects, volumes: Objects, drivers: Objects) -> None:
        self._authorizer = authorizer
        self._claims = claims
        self._volumes = volumes
        self._drivers = drivers

    async def forbidden(self, audiences: Sequence[str], pod: Pod, attributes: Attributes) -> str:
        """Return the reason why a node may not request a token of `pod` for these audiences; "" if it may."""
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0] if audiences else ""
        errors: list[str] = []
        for volume in pod.spec.volumes:
            try:
                if _projects(volume, audience) or await self._is_for_driver(pod, volume, audience):
                    return ""
            except StatusError as error:
                errors.append(error.message)
        if errors:
            return f"error validating audience {quote(audience)}: {aggregate(errors)}"
        user = attributes.user
        action = Action(_VERB, "", "v1", audience, namespace=attributes.action.namespace, name=attributes.name)
        verdict = await decide(self._authorizer, Asked(user, action))
        if verdict.allowed:
            return ""
        missing = f"audience {quote(audience)} not found in pod spec volume"
        if verdict.error:
            return f"{missing}, error authorizing {user.name} to request tokens for this audience: {verdict.error}"
        return f"{missing}, {user.name} is not authorized to request tokens for this audience"

    async def _is_for_driver(self, pod: Pod, volume: Volume, audience: str) -> bool:
        """Return True if the CSI driver of a volume gets tokens for this audience. Raises StatusError for a missing
        object.
        """
        driver = await self._driver_of(pod, volume)
        if not driver:
            return False
        found = await _get(self._drivers, "", driver, GroupResource("storage.k8s.io", "csidriver"))
        return any(each.audience == audience for each in found.spec.token_requests)

    async def _driver_of(self, pod: Pod, volume: Volume) -> str:
        if name := claim_name(pod, volume):
            claim: PersistentVolumeClaim = await _get(
                self._claims, pod.metadata.namespace, name, GroupResource("", "persistentvolumeclaim")
            )
            bound = await _get(self._volumes, "", claim.spec.volume_name, GroupResource("", "persistentvolume"))
            return bound.spec.csi.driver if bound.spec.csi is not None else _migrated(bound.spec)
        return volume.csi.driver if volume.csi is not None else _migrated(volume)


async def _get(objects: Objects, namespace: str, name: str, resource: GroupResource) -> Any:
    """Return an object. Raises StatusError 404 with the resource in the singular, as upstream's listers do."""
    found = await objects.get_cached(namespace, name) if name else None
    if found is None:
        raise not_found(resource, name)
    return found


def _projects(volume: Volume, audience: str) -> bool:
    if volume.projected is None:
        return False
    tokens = (each.service_account_token for each in volume.projected.sources or ())
    return any(token is not None and token.audience == audience for token in tokens)


def _migrated(sources: Any) -> str:
    return next((driver for source, driver in _MIGRATED.items() if getattr(sources, source) is not None), "")
