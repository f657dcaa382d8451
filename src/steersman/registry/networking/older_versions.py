"""networking.k8s.io/v1beta1, off by default: the newest kinds of v1."""

from __future__ import annotations

from typing import Final

from steersman.api.networking import v1, v1beta1
from steersman.registry.older_version import deprecated, older_version

OLDER_VERSIONS: Final = {
    "ipaddresses": (older_version(v1.IPAddress, v1beta1.IPAddress, deprecated(v1beta1.IPAddress, "1.34", "1.37")),),
    "servicecidrs": (
        older_version(v1.ServiceCIDR, v1beta1.ServiceCIDR, deprecated(v1beta1.ServiceCIDR, "1.34", "1.37")),
    ),
}
"""The older versions by resource."""
