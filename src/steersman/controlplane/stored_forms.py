"""The forms (versions and media types) in which a resource's objects may be stored, and the form for writing."""

from __future__ import annotations

from typing import Any, Final

from steersman.kinds.built_in import is_built_in
from steersman.kinds.stored_form import JSON, StoredForm, StoredVersion
from steersman.rest.resource import OtherVersion, Resource


def stored_form(resource: Resource[Any, Any], media_type: str) -> StoredForm | None:
    """Return the form of a built-in kind, None for another.

    Other kinds are always stored as JSON: custom resources keep the version in which they were stored, and their
    readers convert them.
    """
    if not is_built_in(resource.kind.gvk):
        return None
    if resource.always_json:
        media_type = JSON
    names = [other.kind.api_version for other in resource.other_versions]
    return StoredForm(resource.kind, media_type, find=_Versions(resource).find, written=resource.stored_as, names=names)


class _Versions:
    """The other versions of a resource, unserved ones included; they are imported on first use."""

    def __init__(self, resource: Resource[Any, Any]) -> None:
        self._resource: Final = resource

    def find(self, api_version: str) -> StoredVersion | None:
        """Return a version, or None."""
        resource = self._resource
        for other in (*resource.other_versions, *_older(resource), *resource.unserved_versions()):
            if other.kind.api_version == api_version:
                return StoredVersion(other.kind, other.hub, other.from_hub)
        return None


def _older(resource: Resource[Any, Any]) -> tuple[OtherVersion, ...]:
    """Return the versions that --runtime-config could enable."""
    from steersman.controlplane.resources import KUBE_API_GROUPS  # all kinds: servers of a few do without

    for group in KUBE_API_GROUPS:
        if group.name == resource.group:
            more = group.on_request()
            declared = [
                other for each in more.resources if each.plural == resource.plural for other in each.other_versions
            ]
            return (*more.older_versions.get(resource.plural, ()), *declared)
    return ()
