"""Controller that signs approved requests to Kubernetes' own signers (pkg/controller/certificates/signer)."""

from __future__ import annotations

from steersman.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from steersman.client.resources import CERTIFICATE_SIGNING_REQUESTS
from steersman.controllers.authority import Authority, CannotSign
from steersman.controllers.certificates.certificate_controller import CertificateController
from steersman.controllers.certificates.requests import (
    FAILED,
    NotSignable,
    Unreadable,
    check,
    has_failed,
    is_approved,
    parse,
)
from steersman.controllers.certificates.signing import sign
from steersman.controllers.controller import ControllerDependencies, Settings
from steersman.machinery.codec.serializer import deep_copy
from steersman.machinery.values import times
from steersman.work.offloading import offload_if
from steersman.work.work_queue import TryLater


class CSRSigner(CertificateController):
    """Signs requests to the signers that have an authority in the settings, and ignores all others."""

    name = "certificatesigningrequest-signing-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._authorities = dependencies.settings.signers

    @classmethod
    def can_run(cls, settings: Settings) -> bool:
        return bool(settings.signers)

    async def sync(self, key: str) -> None:
        request = self.unsigned(key)
        if request is None or not is_approved(request) or has_failed(request):
            return
        authority = self._authorities.get(request.spec.signer_name)
        if authority is None:
            return
        changed = deep_copy(request)
        try:
            changed.status.certificate = await offload_if(True, _signed, authority, request)
        except NotSignable as error:
            condition = CertificateSigningRequestCondition(
                type=FAILED,
                status="True",
                reason="SignerValidationFailure",
                message=str(error),
                last_update_time=times.now(),
            )
            changed.status.conditions.append(condition)
        except Unreadable as error:
            raise TryLater(f'unable to parse csr "{key}": {error}') from None
        except CannotSign as error:
            raise TryLater(f"error auto signing csr: {error}") from None
        await self.client.update_status(CERTIFICATE_SIGNING_REQUESTS, changed)


def _signed(authority: Authority, request: CertificateSigningRequest) -> bytes:
    """Return the certificate in PEM. Raises Unfit, Unreadable, CannotSign."""
    spec = request.spec
    csr = parse(spec.request)
    check(csr, spec.usages, spec.signer_name)
    return sign(authority, csr, spec.usages, spec.expiration_seconds, times.unix_now())
