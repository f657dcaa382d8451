"""Creation of a server's own objects: created if missing; roles and bindings are completed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.authorization.bootstrap_policy import BootstrapPolicy
from steersman.authorization.reconcile import Operation, Reconciled, reconcile_binding, reconcile_role
from steersman.controlplane.objects import StoreObjects
from steersman.machinery.errors.status import StatusError
from steersman.rest.context import Context, loopback

_RBAC: Final = "rbac.authorization.k8s.io"

_WRITES: Final = (Operation.CREATE, Operation.UPDATE)

ObjectsOf = Callable[[str, str], StoreObjects]
"""Function (group, plural) -> access to the resource's objects."""


async def ensure(objects: StoreObjects, obj: Any) -> bool:
    """Create the object if it is missing; return True if it was created."""
    metadata = obj.metadata
    if objects.is_cached(metadata.namespace, metadata.name):
        return False
    ctx: Context = loopback(metadata.namespace)
    try:
        await objects.create(ctx, obj)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise
        return False
    return True


async def remove(objects: StoreObjects, name: str, namespace: str = "", *, uid: str = "") -> None:
    """Delete the object if it exists; with `uid`, only the object with this uid."""
    options = DeleteOptions(grace_period_seconds=0, preconditions=Preconditions(uid=uid) if uid else None)
    try:
        await objects.delete(loopback(namespace, name), name, options)
    except StatusError as error:
        if error.code != 404 and not (uid and error.code == 409):
            raise


async def all_of(work: Iterable[Awaitable[Any]]) -> None:
    """Await everything concurrently, so that writes share commits; raises the first failure."""
    await asyncio.gather(*work)


async def reconcile_policy(objects: ObjectsOf, policy: BootstrapPolicy) -> None:
    """Create roles and bindings; existing ones keep their additions."""
    await all_of(
        [
            *(_reconcile(objects, "clusterroles", each, reconcile_role) for each in policy.cluster_roles),
            *(
                _reconcile(objects, "clusterrolebindings", each, reconcile_binding)
                for each in policy.cluster_role_bindings
            ),
            *(_reconcile(objects, "roles", each, reconcile_role) for each in policy.roles),
            *(_reconcile(objects, "rolebindings", each, reconcile_binding) for each in policy.role_bindings),
        ]
    )


async def _reconcile(
    objects_of: ObjectsOf, plural: str, expected: Any, decide: Callable[[Any, Any], Reconciled[Any]]
) -> None:
    expected.kind = expected.api_version = ""
    objects = objects_of(_RBAC, plural)
    metadata = expected.metadata
    there: Any = await objects.get_cached(metadata.namespace, metadata.name)
    result = decide(there, expected)
    if result.protected or result.operation is Operation.NONE:
        return
    if result.operation is Operation.RECREATE:
        await remove(objects, metadata.name, metadata.namespace, uid=there.metadata.uid)
    if result.operation is not Operation.UPDATE:
        result.object.metadata.resource_version = ""
        if await ensure(objects, result.object):
            return

    def change(old: Any) -> Any:  # another server may have created or changed it meanwhile
        result = decide(old, expected)
        return result.object if result.operation in _WRITES and not result.protected else old

    await objects.update(loopback(metadata.namespace, metadata.name), metadata.name, change)
