"""Discovery documents of groups, versions and resources (meta/v1 APIResourceList, apidiscovery.k8s.io/v2)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from steersman.kinds.kind import Kind
from steersman.machinery.go.strings import to_lower
from steersman.rest.resource import OtherVersion, Resource, Subresource


class ServedResource(Struct, frozen=True):
    """A resource in one of its served versions."""

    resource: Resource[Any]
    other: OtherVersion | None

    @property
    def form(self) -> Kind[Any]:
        """The kind in this version."""
        return self.other.kind if self.other else self.resource.kind

    @property
    def deprecation_warning(self) -> str:
        """The warning for every request in this version, "" without one."""
        return (self.other or self.resource).deprecation_warning

    @property
    def subresources(self) -> tuple[Subresource[Any], ...]:
        """The subresources in this version."""
        own = None if self.other is None else self.other.subresources
        return self.resource.subresources if own is None else own

    @property
    def group(self) -> str:
        """Return the API group, "" for the core group."""
        return self.form.group

    @property
    def version(self) -> str:
        """Return the version of the group in which the resource is served here."""
        return self.form.version

    @property
    def kind(self) -> str:
        """Return the name of the objects' kind."""
        return self.form.name

    @property
    def selectable_fields(self) -> tuple[str, ...]:
        """Paths of the fields besides metadata by which objects in this version can be selected, e.g. `spec.color`."""
        own = None if self.other is None else self.other.selectable_fields
        return tuple(self.resource.selectable_fields if own is None else own)


def served_versions(resource: Resource[Any]) -> list[ServedResource]:
    """Return a resource in each version that may be served."""
    return [ServedResource(resource, other) for other in (None, *resource.other_versions)]


def singular(resource: Resource[Any]) -> str:
    """Return the singular name of a resource, e.g. "pod"."""
    return resource.singular or to_lower(resource.kind.name)


def resource_list(group: str, version: str, found: Sequence[ServedResource]) -> dict[str, Any]:
    """Return the APIResourceList of a group version: resources sorted by name, each followed by its subresources."""
    group_version = f"{group}/{version}" if group else version
    resources: list[dict[str, Any]] = []
    for each in sorted(found, key=lambda each: each.resource.plural):
        resources.append(_api_resource(each))
        resources += [_api_subresource(each, sub) for sub in _in_order(each)]
    head: dict[str, Any] = {"kind": "APIResourceList"}
    if group:
        head["apiVersion"] = "v1"
    return head | {"groupVersion": group_version, "resources": resources}


def _verbs(resource: Resource[Any]) -> list[str]:
    verbs = list(resource.verbs)
    if resource.discovery_verbs is not None:
        verbs = [verb for verb in resource.discovery_verbs() if verb in verbs]
    return verbs if resource.by_definition else sorted(verbs)


def _in_order(each: ServedResource) -> list[Subresource[Any]]:
    subresources = list(each.subresources)
    return subresources if each.resource.by_definition else sorted(subresources, key=lambda sub: sub.name)


def _api_resource(each: ServedResource) -> dict[str, Any]:
    resource = each.resource
    out: dict[str, Any] = {
        "name": resource.plural,
        "singularName": singular(resource),
        "namespaced": resource.namespaced,
        "kind": each.kind,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        out["shortNames"] = list(resource.short_names)
    if resource.categories:
        out["categories"] = list(resource.categories)
    if resource.storage_version_hash:
        out["storageVersionHash"] = resource.storage_version_hash
    return out


def _sub_kind(each: ServedResource, subresource: Subresource) -> tuple[str, str, str]:
    """Return the kind of a subresource, and its group and version, which are "" if they are the resource's own."""
    if subresource.kind is None:
        return each.kind, "", ""
    gvk = subresource.kind.gvk
    if (gvk.group, gvk.version) == (each.group, each.version):
        return gvk.kind, "", ""
    return gvk.kind, gvk.group, gvk.version


def _api_subresource(each: ServedResource, subresource: Subresource) -> dict[str, Any]:
    kind, group, version = _sub_kind(each, subresource)
    out: dict[str, Any] = {
        "name": f"{each.resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": each.resource.namespaced,
    }
    if group:
        out["group"] = group
    if version:
        out["version"] = version
    return out | {"kind": kind, "verbs": sorted(subresource.verbs)}


def group_metadata(group: str) -> dict[str, Any]:
    """Return the metadata of a group's APIGroupDiscovery."""
    return {"name": group} if group else {}


def version_discovery(version: str, found: Sequence[ServedResource]) -> dict[str, Any]:
    """Return the APIVersionDiscovery of a group version."""
    return {
        "version": version,
        "resources": [_resource_discovery(each) for each in sorted(found, key=lambda each: each.resource.plural)],
        "freshness": "Current",
    }


def _resource_discovery(each: ServedResource) -> dict[str, Any]:
    resource = each.resource
    out: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _response_kind(each, each.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": singular(resource),
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        out["shortNames"] = list(resource.short_names)
    if resource.categories:
        out["categories"] = list(resource.categories)
    if each.subresources:
        out["subresources"] = [_subresource_discovery(each, sub) for sub in _in_order(each)]
    return out


def _response_kind(each: ServedResource, kind: str, group: str = "", version: str = "") -> dict[str, str]:
    """Return the responseKind of a resource or subresource.

    An empty group and version mean those of the document; upstream leaves them out only for built-in resources.
    """
    if not version and each.resource.by_definition:
        group, version = each.group, each.version
    return {"group": group, "version": version, "kind": kind}


def _subresource_discovery(each: ServedResource, subresource: Subresource) -> dict[str, Any]:
    return {
        "subresource": subresource.name,
        "responseKind": _response_kind(each, *_sub_kind(each, subresource)),
        "verbs": sorted(subresource.verbs),
    }


def etag_of(document: bytes) -> str:
    """Return upstream's ETag of an encoded document: its SHA-512 in upper-case hexadecimal, in quotes."""
    return f'"{hashlib.sha512(document).hexdigest().upper()}"'
