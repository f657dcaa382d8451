"""certificates.k8s.io: its resources and versions."""

from __future__ import annotations

from typing import Final

from steersman.registry.api_group import APIGroup, Version
from steersman.registry.certificates.certificatesigningrequests import CERTIFICATE_SIGNING_REQUESTS

CERTIFICATES: Final = APIGroup(
    name="certificates.k8s.io",
    priority=17300,
    versions=(Version("v1"),),
    empty_versions=("v1alpha1", "v1beta1"),
    resources=(CERTIFICATE_SIGNING_REQUESTS,),
)
