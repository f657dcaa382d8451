"""Common base of the approving and the signing controller: it queues every request without a certificate.

Follows pkg/controller/certificates/certificate_controller.go.
"""

from __future__ import annotations

from typing import Final

from steersman.api.certificates.v1 import CertificateSigningRequest
from steersman.client.resources import CERTIFICATE_SIGNING_REQUESTS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.work.work_queue import WorkQueue

_BASE_DELAY: Final = 0.2
"""Seconds before the first retry of a failed request."""


class CertificateController(Controller[str]):
    """Processes certificate signing requests. A key is the name of a request."""

    account = "certificate-controller"

    def __init__(self, dependencies: ControllerDependencies) -> None:
        super().__init__(dependencies)
        self.queue = WorkQueue(base_delay=_BASE_DELAY)
        self.requests = self.informers.for_resource(CERTIFICATE_SIGNING_REQUESTS)
        self.requests.on_change(self._changed)

    def _changed(self, old: CertificateSigningRequest | None, new: CertificateSigningRequest | None) -> None:
        if new is not None and not new.status.certificate:
            self.queue.add(new.metadata.name)

    def unsigned(self, name: str) -> CertificateSigningRequest | None:
        """Return a request without a certificate, None if it has one or is gone. The object is shared: do not change
        it.
        """
        request = self.requests.get("", name)
        return None if request is None or request.status.certificate else request
