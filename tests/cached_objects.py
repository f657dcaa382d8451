"""Objects in the caches of a control plane."""

from __future__ import annotations

from typing import Any

from steersman.controlplane.control_plane import ControlPlane


async def cached(plane: ControlPlane, group: str, plural: str, namespace: str, name: str) -> Any:
    """Return the cached object of that name, which must exist."""
    found = await plane.objects(group, plural).get_cached(namespace, name)
    assert found is not None
    return found
