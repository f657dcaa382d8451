"""Preconditions of deletes, for kinds that upstream deletes in a storage of their own."""

from __future__ import annotations

from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.machinery.errors.status import conflict
from steersman.machinery.identity.schema import GroupResource


def check_preconditions(options: DeleteOptions, metadata: ObjectMeta, resource: GroupResource) -> None:
    """Raise StatusError 409 if the UID or resourceVersion differs (namespaces and CustomResourceDefinitions)."""
    wanted = options.preconditions
    if wanted is None:
        return
    for name, asked, found in (
        ("UID", wanted.uid, metadata.uid),
        ("ResourceVersion", wanted.resource_version, metadata.resource_version),
    ):
        if asked is not None and asked != found:
            why = f"Precondition failed: {name} in precondition: {asked}, {name} in object meta: {found}"
            raise conflict(resource, metadata.name, why)
