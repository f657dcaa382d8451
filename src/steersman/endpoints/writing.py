"""Common steps of all write requests: parsing, preparation of the object, storing.

`parse` reads the request into a `Write`, the input of all later steps. A handler prepares the object: a new one
(`store_new`) or a changed one (`store_changed`). Admission and the check of the right to create run between preparation
and the store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeAlias

import msgspec
from msgspec import Struct

from steersman.admission.interface import CREATE, UPDATE, Operation
from steersman.admission.interface import Attributes as Admission
from steersman.api.meta.v1 import CreateOptions, DeleteOptions, PatchOptions, UpdateOptions
from steersman.authorization.attributes import Attributes
from steersman.authorization.forbidden import forbidden_error
from steersman.authorization.interface import decide
from steersman.endpoints.bodies import arriving_body, body_at_hand, is_large_body
from steersman.endpoints.negotiation import JSON, Representation
from steersman.endpoints.objects import representation
from steersman.endpoints.options import OptionsOf
from steersman.endpoints.ownership import deduplicate_owners, keep_valid_owners
from steersman.endpoints.request import Request
from steersman.endpoints.scope import C, Scope
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.large_work.sizes import SURELY_SMALL
from steersman.rest.capabilities import Change, Creater, Item, Make, Updated, Updater
from steersman.rest.context import Context
from steersman.work.offloading import mark_large, offload, offload_if

Options: TypeAlias = CreateOptions | UpdateOptions | PatchOptions | DeleteOptions


class Write(Struct, Generic[C]):
    """A write request as sent: the body and its media type, the options, and the wanted representation of the answer.

    `ctx` is the request's context for storage.
    """

    scope: Scope[C]
    request: Request
    wanted: Representation
    media: str
    data: bytes
    options: Any
    ctx: Context

    def admission(
        self, operation: Operation, obj: Any, old: Any, *, name: str = "", kind: GroupVersionKind | None = None
    ) -> Admission:
        """Return the admission attributes. `name` defaults to the URL's name, `kind` to the resource's.

        As upstream, a new Namespace has its own name as its namespace.
        """
        request, ctx = self.request, self.ctx
        action = request.action
        if not action.namespace and operation == CREATE and action.resource == "namespaces" and not action.group:
            action = msgspec.structs.replace(action, namespace=name)
        return Admission(
            operation,
            request.user,
            action,
            kind or self.scope.gvk,
            name or action.name,
            obj,
            old,
            self.options,
            ctx.dry_run,
            request.warnings,
            request.audit,
        )


async def parse(
    scope: Scope[C],
    request: Request,
    media_of: Callable[[Scope, Request], str],
    options_of: OptionsOf[Any],
) -> Write[C]:
    """Read a write request; errors are raised in upstream's order.

    Raises StatusError 406, the errors of `media_of` (415), 413, the errors of `options_of` (422), and 429.
    """
    if scope.kind.is_cold:
        await offload_if(True, scope.kind.warm)
    wanted = representation(scope, request)
    media = media_of(scope, request)
    data = body_at_hand(scope, request)
    if data is None:
        data = await arriving_body(scope, request)
    options: Any = options_of.none
    if options is None or request.http.query:
        options = await offload_if(True, options_of, request) if request.has_long_query else options_of(request)
    if (len(data) > SURELY_SMALL or media != JSON or scope.kind.takes_long) and is_large_body(
        scope, request, data, media
    ):
        mark_large()
    ctx = request.context(dry_run=bool(options.dry_run))
    return Write(scope, request, wanted, media, data, options, ctx)


async def store_new(write: Write[Creater], obj: Any) -> Item:
    """Store a new object of the stored version, after admission."""
    chain = write.scope.shared.admission
    record = await admitted(write, obj, None)

    def check(obj: Any) -> Awaitable[None]:
        record.obj, record.name = obj, obj.metadata.name
        return chain.validate(record)

    return await write.scope.storage.create(write.ctx, record.obj, check)


async def store_changed(write: Write[Updater], prepare: Make, *, uid: str = "", may_create: bool = False) -> Updated:
    """Store the object that `prepare` returns for the present one, both of the stored version, after admission.

    With `may_create` the object is created if it is missing, otherwise only if the kind can be created by PUT.
    """
    chain, action = write.scope.shared.admission, write.request.action

    async def make(old: Any | None) -> Any:
        return (await admitted(write, await prepare(old), old)).obj

    def check(new: Any, old: Any) -> Awaitable[None]:
        return chain.validate(write.admission(UPDATE, new, old))

    change = Change(
        make,
        uid,
        action.subresource,
        may_create=may_create,
        check_create=partial(_check_creation, write),
        check_update=check,
    )
    return await write.scope.storage.update(write.ctx, action.name, change)


async def admitted(write: Write, obj: Any, old: Any | None) -> Admission:
    """Run mutating admission of an object that is to be stored; return the attributes with the resulting object."""
    record = write.admission(CREATE if old is None else UPDATE, obj, old, name=obj.metadata.name)
    owners = obj.metadata.managed_fields
    await write.scope.shared.admission.admit(record)
    if record.obj.metadata.managed_fields is not owners:
        await offload(keep_valid_owners, write.request, record.obj, owners)
    if record.obj.metadata.owner_references:
        await offload(partial(deduplicate_owners, write.request, record.obj, after_admission=True))
    return record


async def mutated(write: Write, record: Admission) -> None:
    """Run mutating admission; its plugins may replace the object in the attributes. Its managedFields stay valid."""
    owners = record.obj.metadata.managed_fields
    await write.scope.shared.admission.admit(record)
    if record.obj.metadata.managed_fields is not owners:
        await offload(keep_valid_owners, write.request, record.obj, owners)


async def _check_creation(write: Write, obj: Any) -> None:
    """Authorize the creation of an object by a request to change it, and run validating admission.

    A creation through a subresource, as of a Service through its status, needs the right to create that subresource.
    Raises StatusError 403 for a request user without the right.
    """
    request = write.request
    action = msgspec.structs.replace(request.action, verb="create")
    attributes = Attributes(request.user, action)
    verdict = await decide(write.scope.shared.authorizer, attributes)
    if not verdict.allowed:
        raise forbidden_error(attributes, verdict.reason)
    await write.scope.shared.admission.validate(write.admission(CREATE, obj, None, name=obj.metadata.name))
