"""Deletes requests for certificates that are over and done with (pkg/controller/certificates/cleaner)."""

from __future__ import annotations

import logging
from typing import Final

from steersman.api.certificates.v1 import CertificateSigningRequest
from steersman.client.errors import is_not_found
from steersman.client.resources import CERTIFICATE_SIGNING_REQUESTS
from steersman.controllers.certificates.requests import APPROVED, DENIED, FAILED
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.machinery.errors.status import StatusError
from steersman.machinery.go.pem import decode_block
from steersman.machinery.values import times
from steersman.work.offloading import offload_if

logger = logging.getLogger(__name__)

INTERVAL: Final = 3600.0
"""Seconds between two looks at all requests."""
_JUDGED: Final = 3600.0
"""Seconds for which requests stay that have a certificate, are denied or have failed."""
_PENDING: Final = 86400.0
"""The same of those that nobody has judged, or signed."""


class CSRCleaner(Controller[str]):
    """There is one key: all requests."""

    name = "certificatesigningrequest-cleaner-controller"
    account = "certificate-controller"
    workers = 1

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._requests = self.informers.for_resource(CERTIFICATE_SIGNING_REQUESTS)
        self.queue.add("")

    async def sync(self, key: str) -> None:
        now = times.moment()
        for request in self._requests:
            if is_over(request, now) or await _has_expired(request, now):
                try:
                    await self.client.delete(CERTIFICATE_SIGNING_REQUESTS, request.metadata.name)
                except StatusError as error:
                    if not is_not_found(error):
                        logger.warning("request %s cannot be deleted: %s", request.metadata.name, error)
        self.queue.add_after(key, INTERVAL)


def is_over(request: CertificateSigningRequest, now: float) -> bool:
    """Whether a request has been there long enough in the state it is in."""
    conditions = request.status.conditions
    if not conditions:
        return _is_older(request.metadata.creation_timestamp, _PENDING, now)
    approved = _JUDGED if request.status.certificate else _PENDING
    lasts = {DENIED: _JUDGED, FAILED: _JUDGED, APPROVED: approved}
    return any(each.type in lasts and _is_older(each.last_update_time, lasts[each.type], now) for each in conditions)


def _is_older(time: str | None, seconds: float, now: float) -> bool:
    return time is not None and now - times.unix(time) > seconds


async def _has_expired(request: CertificateSigningRequest, now: float) -> bool:
    """Whether the certificate that was signed is out of its time."""
    approved = any(each.type == APPROVED for each in request.status.conditions)
    if not (approved and request.status.certificate):
        return False
    return await offload_if(True, _is_out_of_time, request.status.certificate, now)


def _is_out_of_time(pem: bytes, now: float) -> bool:
    from cryptography.x509 import load_der_x509_certificate

    block, _ = decode_block(pem)
    if block is None:
        return False
    try:
        return load_der_x509_certificate(block.content).not_valid_after_utc.timestamp() < now
    except ValueError:
        return False
