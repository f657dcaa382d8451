"""Resources without objects, for catalogues."""

from __future__ import annotations

from typing import Any

from steersman.kinds.open import OpenKind
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.resource import OtherVersion, Resource


def resource(plural: str, *versions: str, group: str = "e.x", kind: str = "", **more: Any) -> Resource[Any]:
    """A resource whose first version is stored."""
    stored, *others = (OpenKind(GroupVersionKind(group, each, kind or plural.title())) for each in versions or ("v1",))
    other_versions = tuple(OtherVersion(each, lambda obj: obj, lambda obj: obj) for each in others)
    return Resource(
        kind=stored, plural=plural, other_versions=other_versions, name_validator=name_is_dns_subdomain, **more
    )
