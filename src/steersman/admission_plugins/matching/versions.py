"""The object of a request in the version that webhooks and policies ask for, and what comes back of it
(apiserver `admission/conversion.go`).

Plugins have objects of the version they are stored in, or of a subresource's own kind. Those of definitions are of the
request's version, as they are converted where they are stored (`Resource.conversion`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from steersman.admission.interface import Attributes
from steersman.admission_plugins.matching.rules import Seen
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.endpoints.discovery import ServedResource
from steersman.kinds.kind import Kind
from steersman.kinds.open import OpenKind
from steersman.machinery.errors.status import internal
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.rest.conversion import Conversion, run_with_conversions
from steersman.rest.resource import OtherVersion
from steersman.work.offloading import offload


class Form:
    """How the objects of one request become those of a version, and again what plugins have of them."""

    def __init__(self, kind: Kind[Any], served: ServedResource | None, of_request: Kind[Any]) -> None:
        self.kind: Final = kind
        """That of the version."""
        self._of_request: Final = of_request
        self._other: Final = None if served is None else served.other
        self._conversion: Final[Conversion | None] = None if served is None else served.resource.conversion

    @property
    def converts(self) -> bool:
        """Whether objects are of another version than what plugins have."""
        return self._conversion is not None or self._other is not None

    async def made(self, attributes: Attributes, obj: Any) -> Any:
        """An object of this version. It may be the same object, or share parts with it: nothing may change it. Raises
        StatusError of a webhook that converts."""
        conversion = self._conversion
        if conversion is not None:
            source, target = self._kinds(conversion)
            return await run_with_conversions(conversion.convert, obj, source, target)
        if self._other is None:
            return obj
        return await offload(self._other.from_hub, obj)

    async def taken_back(self, attributes: Attributes, obj: Any) -> Any:
        """What plugins have of an object of this version, which is defaulted first and may be used up. Raises
        StatusError of a webhook that converts."""
        conversion, other = self._conversion, self._other
        if conversion is not None:
            await offload(self.kind.default, obj)
            target, source = self._kinds(conversion)
            return await run_with_conversions(conversion.convert, obj, source, target)
        return await offload(partial(_hub, self.kind, other), obj)

    def _kinds(self, conversion: Conversion) -> tuple[OpenKind, OpenKind]:
        """That of the request, and that of the version."""
        return conversion.kinds[self._of_request.api_version], conversion.kinds[self.kind.api_version]

    def document(self, obj: Any) -> bytes:
        """The JSON of an object of this version, with kind, apiVersion and resourceVersion."""
        return self.kind.prefix + self.kind.body(obj)


def _hub(kind: Kind[Any], other: OtherVersion | None, obj: Any) -> Any:
    kind.default(obj)
    return obj if other is None else other.hub(obj)


class Versions:
    """Finds the forms in which the objects of requests may be seen."""

    def __init__(self, mapper: RESTMapper) -> None:
        self._mapper: Final = mapper

    def form(self, attributes: Attributes, seen: Seen) -> Form:
        """That of a request as it was matched. Raises StatusError 500 where nothing of that kind is served."""
        action = attributes.action
        own = self._mapper.get(action.group, action.version, action.resource)
        if own is None:
            raise _not_served(attributes.kind)
        if attributes.kind != own.form.gvk:  # a subresource's own kind
            return Form(_below(own, attributes.kind), None, own.form)
        served = own
        if (seen.group, seen.version) != (action.group, action.version):
            found = self._mapper.get(seen.group, seen.version, seen.resource)
            if found is None:
                raise _not_served(seen.kind)
            served = found
        return Form(served.form, served, own.form)

    def of_kind(self, gvk: GroupVersionKind) -> Kind[Any] | None:
        """A kind that is served, with its defaults."""
        found = self._mapper.resources_for(gvk)
        return found[0].form if found else None

    def own(self, attributes: Attributes) -> Kind[Any]:
        """The kind of what plugins have of the objects of a request. Raises StatusError 500."""
        action = attributes.action
        served = self._mapper.get(action.group, action.version, action.resource)
        if served is None:
            raise _not_served(attributes.kind)
        if attributes.kind != served.form.gvk:
            return _below(served, attributes.kind)
        return served.form if served.resource.conversion is not None else served.resource.kind


def _below(served: ServedResource, gvk: GroupVersionKind) -> Kind[Any]:
    for each in served.subresources:
        for kind in (each.kind, each.options):
            if kind is not None and kind.gvk == gvk:
                return kind
    raise _not_served(gvk)


def _not_served(gvk: GroupVersionKind) -> Exception:
    return internal(f"unable to convert to {gvk}: unknown kind")
