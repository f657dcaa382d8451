"""Controller that deletes old certificate signing requests (pkg/controller/certificates/cleaner)."""

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
"""Seconds between two clean-ups."""
_JUDGED: Final = 3600.0
"""Seconds after which signed, denied and failed requests are deleted."""
_PENDING: Final = 86400.0
"""Seconds after which requests without an approval, or without a certificate, are deleted."""


class CSRCleaner(Controller[str]):
    """Cleans up all requests, for which there is a single key."""

    name = "certificatesigningrequest-cleaner-controller"
    account = "certificate-controller"
    workers = 1

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self._requests = self.informers.for_resource(CERTIFICATE_SIGNING_REQUESTS)
        self.queue.add("")

    async def sync(self, key: str) -> None:
        now = times.unix_now()
        for request in self._requests:
            if is_over(request, now) or await _has_expired(request, now):
                try:
                    await self.client.delete(CERTIFICATE_SIGNING_REQUESTS, request.metadata.name)
                except StatusError as error:
                    if not is_not_found(error):
                        logger.warning("request %s cannot be deleted: %s", request.metadata.name, error)
        self.queue.add_after(key, INTERVAL)


def is_over(request: CertificateSigningRequest, now: float) -> bool:
    """Return True if a request has been in its current state for long enough to be deleted."""
    conditions = request.status.conditions
    if not conditions:
        return _is_older(request.metadata.creation_timestamp, _PENDING, now)
    approved = _JUDGED if request.status.certificate else _PENDING
    lasts = {DENIED: _JUDGED, FAILED: _JUDGED, APPROVED: approved}
    return any(each.type in lasts and _is_older(each.last_update_time, lasts[each.type], now) for each in conditions)


def _is_older(time: str | None, seconds: float, now: float) -> bool:
    return time is not None and now - times.unix(time) > seconds


async def _has_expired(request: CertificateSigningRequest, now: float) -> bool:
    """Return True if the signed certificate has expired."""
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
