"""Conversion of a request's objects to the version that webhooks and policies match, and back.

Follows apiserver `admission/conversion.go`. Plugins get objects in the stored version, or of a subresource's own kind.
Custom resources are in the request's version, because they are converted when they are stored (`Resource.conversion`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from steersman.admission.interface import Attributes
from steersman.admission_plugins.matching.rules import MatchedResource
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.endpoints.discovery import ServedResource
from steersman.kinds.kind import Kind
from steersman.kinds.open import OpenKind
from steersman.machinery.errors.status import internal
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.rest.conversion import Conversion, run_with_conversions
from steersman.rest.resource import OtherVersion
from steersman.work.offloading import offload


class VersionConversion:
    """Conversion between the plugins' version of a request's objects and one other version."""

    def __init__(self, kind: Kind[Any], served: ServedResource | None, of_request: Kind[Any]) -> None:
        self.kind: Final = kind
        """Kind in the other version."""
        self._of_request: Final = of_request
        self._other: Final = None if served is None else served.other
        self._conversion: Final[Conversion | None] = None if served is None else served.resource.conversion

    @property
    def converts(self) -> bool:
        """Return True if the other version differs from the plugins' version."""
        return self._conversion is not None or self._other is not None

    async def convert(self, attributes: Attributes, obj: Any) -> Any:
        """Return an object in the other version. It may be or share parts with `obj`: do not change it.

        Raises StatusError if a conversion webhook fails.
        """
        conversion = self._conversion
        if conversion is not None:
            source, target = self._kinds(conversion)
            return await run_with_conversions(conversion.convert, obj, source, target)
        if self._other is None:
            return obj
        return await offload(self._other.from_hub, obj)

    async def convert_back(self, attributes: Attributes, obj: Any) -> Any:
        """Return an object of the other version in the plugins' version, after setting its defaults. `obj` may be
        changed.

        Raises StatusError if a conversion webhook fails.
        """
        conversion, other = self._conversion, self._other
        if conversion is not None:
            await offload(self.kind.default, obj)
            target, source = self._kinds(conversion)
            return await run_with_conversions(conversion.convert, obj, source, target)
        return await offload(partial(_to_stored_version, self.kind, other), obj)

    def _kinds(self, conversion: Conversion) -> tuple[OpenKind, OpenKind]:
        """Return the kinds in the request's version and in the other version."""
        return conversion.kinds[self._of_request.api_version], conversion.kinds[self.kind.api_version]

    def encode(self, obj: Any) -> bytes:
        """Return the JSON of an object of the other version, with kind, apiVersion and resourceVersion."""
        return self.kind.prefix + self.kind.body(obj)


def _to_stored_version(kind: Kind[Any], other: OtherVersion | None, obj: Any) -> Any:
    kind.default(obj)
    return obj if other is None else other.hub(obj)


class Conversions:
    """Finds the conversions of requests' objects."""

    def __init__(self, mapper: RESTMapper) -> None:
        self._mapper: Final = mapper

    def find(self, attributes: Attributes, matched: MatchedResource) -> VersionConversion:
        """Return the conversion to the matched version of a request. Raises StatusError 500 if the kind is not served."""
        action = attributes.action
        own = self._mapper.get(action.group, action.version, action.resource)
        if own is None:
            raise _not_served(attributes.kind)
        if attributes.kind != own.form.gvk:  # the object is of a subresource's own kind
            return VersionConversion(_subresource_kind(own, attributes.kind), None, own.form)
        served = own
        if (matched.group, matched.version) != (action.group, action.version):
            found = self._mapper.get(matched.group, matched.version, matched.resource)
            if found is None:
                raise _not_served(matched.kind)
            served = found
        return VersionConversion(served.form, served, own.form)

    def served_kind(self, gvk: GroupVersionKind) -> Kind[Any] | None:
        """Return a served kind, None if it is not served."""
        found = self._mapper.resources_for(gvk)
        return found[0].form if found else None

    def kind_of_object(self, attributes: Attributes) -> Kind[Any]:
        """Return the kind of a request's objects as plugins get them. Raises StatusError 500 if it is not served."""
        action = attributes.action
        served = self._mapper.get(action.group, action.version, action.resource)
        if served is None:
            raise _not_served(attributes.kind)
        if attributes.kind != served.form.gvk:
            return _subresource_kind(served, attributes.kind)
        return served.form if served.resource.conversion is not None else served.resource.kind


def _subresource_kind(served: ServedResource, gvk: GroupVersionKind) -> Kind[Any]:
    for each in served.subresources:
        for kind in (each.kind, each.options):
            if kind is not None and kind.gvk == gvk:
                return kind
    raise _not_served(gvk)


def _not_served(gvk: GroupVersionKind) -> Exception:
    return internal(f"unable to convert to {gvk}: unknown kind")
