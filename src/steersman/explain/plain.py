"""Resources whose objects are read as plain data."""

from __future__ import annotations

from typing import Any

from steersman.client.api_resource import APIResource


def plain_data(resource: APIResource[Any]) -> APIResource[dict[str, Any]]:
    """Return a resource with objects as plain data."""
    return APIResource(
        resource.group, resource.version, resource.plural, resource.kind, dict, namespaced=resource.namespaced
    )
