"""Declared resources in a Steersman control plane in this process, in addition to its own resources."""

from __future__ import annotations

from functools import partial
from typing import Any

from steersman.api.apiextensions.v1 import CustomResourceDefinitionNames
from steersman.controlplane.control_plane import ControlPlane
from steersman.library.checked import check_definition
from steersman.library.custom import resource_of_declaration
from steersman.library.custom_storage import custom_storage
from steersman.library.declaration import Declaration, declaration_of
from steersman.library.definition import names_of
from steersman.library.hooked import objects_of
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.services import Services
from steersman.rest.bound import BoundResource
from steersman.rest.capabilities import ResourceStorage


async def mount(plane: ControlPlane, *resources: type[Any]) -> None:
    """Serve the resources of these classes from now on, in the control plane's storage, until it stops.

    A resource that is already served under the same name is replaced, and its watches end. A CustomResourceDefinition
    of the same name is not served any more, and its condition NamesAccepted says so.

    Raises DefinitionError for a class that is not declared or cannot be served, ValueError if a built-in resource has
    its name.
    """
    declarations = [declaration_of(each) for each in resources]
    for declaration in declarations:
        await plane.offload(check_definition, declaration)
    for declaration in declarations:
        resource = resource_of_declaration(declaration)
        on = None if declaration.storage is None else partial(_custom_storage, plane, declaration)
        await plane.serve_custom(resource, declaration.serves, on=on)
        plane.reserve_names(declaration.group, from_plain(CustomResourceDefinitionNames, names_of(declaration)))


def _custom_storage(
    plane: ControlPlane, declaration: Declaration, bound: BoundResource[Any], services: Services
) -> ResourceStorage:
    return custom_storage(declaration, bound, partial(objects_of, services))
