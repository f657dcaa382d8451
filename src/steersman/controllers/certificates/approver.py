"""Controller that approves kubelets' requests for client certificates (pkg/controller/certificates/approver)."""

from __future__ import annotations

from typing import Final

from steersman.api.authorization.v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from steersman.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from steersman.client.resources import CERTIFICATE_SIGNING_REQUESTS, SUBJECT_ACCESS_REVIEWS
from steersman.controllers.certificates.certificate_controller import CertificateController
from steersman.controllers.certificates.requests import (
    APPROVED,
    KUBELET_CLIENT,
    NotSignable,
    Unreadable,
    check,
    common_name,
    is_approved_or_denied,
    parse,
)
from steersman.machinery.codec.serializer import deep_copy
from steersman.work.offloading import offload_if
from steersman.work.work_queue import TryLater

_SELF: Final = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
_ANY: Final = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")
"""Subresource that the user must be allowed to create, and the message of the approval.

The first is for a node's own certificate, the second for any node's certificate.
"""


class CSRApprover(CertificateController):
    """Approves requests for nodes' client certificates by users who may create them."""

    name = "certificatesigningrequest-approving-controller"

    async def sync(self, key: str) -> None:
        request = self.unsigned(key)
        if request is None or is_approved_or_denied(request):
            return
        try:
            kinds = await offload_if(True, recognized, request)
        except Unreadable as error:
            raise TryLater(f'unable to parse csr "{key}": {error}') from None
        for subresource, message in kinds:
            if await self._is_allowed(request, subresource):
                changed = deep_copy(request)
                condition = CertificateSigningRequestCondition(
                    type=APPROVED, status="True", reason="AutoApproved", message=message
                )
                changed.status.conditions.append(condition)
                await self.client.update(CERTIFICATE_SIGNING_REQUESTS, changed, "approval")
                return
        if kinds:
            tried = " ".join(subresource for subresource, _ in kinds)
            raise TryLater(f'recognized csr "{key}" as [{tried}] but subject access review was not approved')

    async def _is_allowed(self, request: CertificateSigningRequest, subresource: str) -> bool:
        spec = request.spec
        attributes = ResourceAttributes(
            group="certificates.k8s.io",
            resource="certificatesigningrequests",
            verb="create",
            version="*",
            subresource=subresource,
        )
        review = SubjectAccessReviewSpec(
            user=spec.username, uid=spec.uid, groups=spec.groups, extra=spec.extra, resource_attributes=attributes
        )
        return (await self.client.create(SUBJECT_ACCESS_REVIEWS, SubjectAccessReview(spec=review))).status.allowed


def recognized(request: CertificateSigningRequest) -> list[tuple[str, str]]:
    """Return the ways in which a request can be approved: subresource and message of each. Raises Unreadable."""
    csr = parse(request.spec.request)
    if request.spec.signer_name != KUBELET_CLIENT:
        return []
    try:
        check(csr, request.spec.usages, KUBELET_CLIENT)
    except NotSignable:
        return []
    return [_SELF, _ANY] if request.spec.username == common_name(csr) else [_ANY]
