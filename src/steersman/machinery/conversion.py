"""The conversions among built-in versions, the versions they meet in, and the scheme that has them."""

from __future__ import annotations

from typing import Final

from steersman.machinery import conversion_autoscaling, conversion_events, conversion_resource
from steersman.machinery.schema import GroupVersion
from steersman.machinery.scheme import Scheme

HUBS: Final = {
    GroupVersion("autoscaling", "v1"): GroupVersion("autoscaling", "v2"),
    GroupVersion("events.k8s.io", "v1"): GroupVersion("", "v1"),
    GroupVersion("resource.k8s.io", "v1beta1"): GroupVersion("resource.k8s.io", "v1"),
    GroupVersion("resource.k8s.io", "v1beta2"): GroupVersion("resource.k8s.io", "v1"),
}
"""Versions that are not stored as they are, and the version that is."""

CONVERSIONS: Final = (
    *conversion_autoscaling.CONVERSIONS,
    *conversion_events.CONVERSIONS,
    *conversion_resource.CONVERSIONS,
)


def built_in_scheme() -> Scheme:
    """The scheme of the built-in kinds."""
    return Scheme(CONVERSIONS, HUBS)
