"""In which forms objects of a resource may lie in the store, and in which they are written there."""

from __future__ import annotations

from typing import Any, Final

from steersman.kinds.built_in import is_built_in
from steersman.kinds.stored_form import JSON, StoredForm, StoredVersion
from steersman.rest.resource import OtherVersion, Resource


def stored_form(resource: Resource[Any, Any], media_type: str) -> StoredForm | None:
    """The form of a built-in kind. None for others, of which everything is JSON: custom resources keep the version they
    were stored in, and what reads them makes them fit."""
    if not is_built_in(resource.kind.gvk):
        return None
    if resource.always_json:
        media_type = JSON
    names = [other.kind.api_version for other in resource.other_versions]
    return StoredForm(resource.kind, media_type, find=_Versions(resource).find, written=resource.stored_as, names=names)


class _Versions:
    """The versions of a resource beside its own, those too that are not served: they are imported when one is met."""

    def __init__(self, resource: Resource[Any, Any]) -> None:
        self._resource: Final = resource

    def find(self, api_version: str) -> StoredVersion | None:
        """The version, None if there is none."""
        resource = self._resource
        for other in (*resource.other_versions, *_older(resource), *resource.unserved_versions()):
            if other.kind.api_version == api_version:
                return StoredVersion(other.kind, other.hub, other.from_hub)
        return None


def _older(resource: Resource[Any, Any]) -> tuple[OtherVersion, ...]:
    """The versions that --runtime-config could turn on."""
    from steersman.controlplane.resources import KUBE_API_GROUPS  # all kinds: servers of a few do without

    for group in KUBE_API_GROUPS:
        if group.name == resource.group:
            more = group.on_request()
            declared = [
                other for each in more.resources if each.plural == resource.plural for other in each.other_versions
            ]
            return (*more.older_versions.get(resource.plural, ()), *declared)
    return ()
