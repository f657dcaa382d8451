"""The Resource of a declared class: that of its CustomResourceDefinition, with the hooks of the class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from steersman.apiextensions.custom_resource import resource_of
from steersman.apiextensions.declared import Declared, read_declared
from steersman.apiextensions.strategy import StatusStrategy, Versions
from steersman.kinds.custom import CustomKind
from steersman.library.conversion import ClassConversion
from steersman.library.declaration import Declaration
from steersman.library.definition import names_of, plain_definition
from steersman.library.hooked import Admission, AfterWrite, Hooked, HookedStatusStrategy, HookedStrategy
from steersman.library.hooks import HookSet
from steersman.library.instances import Instances
from steersman.library.storage import verbs_of_storage
from steersman.machinery.codec.serializer import encode
from steersman.rest.conversion import Conversion
from steersman.rest.resource import Resource, Subresource

if TYPE_CHECKING:
    from steersman.api.apiextensions.v1 import CustomResourceConversion

_STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class _ConversionFactory:
    """Makes the conversion of a declaration; see custom_resource.ConversionFactory."""

    declaration: Declaration

    def make(self, name: str, declared: CustomResourceConversion | None, kinds: Mapping[str, CustomKind]) -> Conversion:
        return ClassConversion(self.declaration, kinds)


def resource_of_declaration(declaration: Declaration) -> Resource[Any, Any]:
    """Return the resource, not bound to a server yet. Raises TypeError."""
    resource, versions = resource_of(_declared(declaration), _ConversionFactory(declaration))
    if declaration.storage is not None:
        resource = replace(resource, verbs=verbs_of_storage(declaration.storage))
    hooks = declaration.hooks
    hooked = Hooked(hooks, Instances(declaration), versions)
    return replace(
        resource,
        strategy=HookedStrategy(versions, hooked),
        subresources=_hooked(resource.subresources, versions, hooked, hooks.for_subresource(_STATUS)),
        other_versions=tuple(
            replace(
                each, subresources=_hooked(each.subresources or (), versions, hooked, hooks.for_subresource(_STATUS))
            )
            for each in resource.other_versions
        ),
        inquiry=partial(Admission, hooked, "") if hooks.admit else None,
        allocator=partial(AfterWrite, hooked, "") if hooks.after_write else None,
    )


def _hooked(
    subresources: tuple[Subresource[Any], ...], versions: Versions, hooked: Hooked, hooks: HookSet
) -> tuple[Subresource[Any], ...]:
    return tuple(
        replace(
            each,
            strategy=HookedStatusStrategy(versions, hooked),
            inquiry=partial(Admission, hooked, _STATUS) if hooks.admit else None,
            allocator=partial(AfterWrite, hooked, _STATUS) if hooks.after_write else None,
        )
        if isinstance(each.strategy, StatusStrategy)
        else each
        for each in subresources
    )


def _declared(declaration: Declaration) -> Declared:
    plain = plain_definition(declaration)
    plain["status"] = {"acceptedNames": names_of(declaration)}
    return read_declared(encode(plain)[1:])
