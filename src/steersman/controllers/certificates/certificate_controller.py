"""What approving and signing share: each request without a certificate is looked at, again after some time if need be.

Follows pkg/controller/certificates/certificate_controller.go.
"""

from __future__ import annotations

from typing import Final

from steersman.api.certificates.v1 import CertificateSigningRequest
from steersman.client.resources import CERTIFICATE_SIGNING_REQUESTS
from steersman.controllers.controller import Controller, ControllerDependencies
from steersman.work.work_queue import WorkQueue

_BASE_DELAY: Final = 0.2
"""Seconds before a request that cannot be worked on is tried again, at first."""


class CertificateController(Controller[str]):
    """A key is a request's name."""

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
        """A request that has no certificate yet; it is shared."""
        found = self.requests.get("", name)
        return None if found is None or found.status.certificate else found
