"""Subjects of history: the object or collection that a path below /debug/history names, if the user may read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from steersman.authorization.attributes import Attributes
from steersman.authorization.forbidden import refusal
from steersman.authorization.interface import Authorizer, Decision, decide
from steersman.catalogue.catalogue import Catalogue
from steersman.endpoints.request import Request
from steersman.endpoints.request_info import BadRequestInfo, RequestInfo, read_request_info
from steersman.endpoints.responses import unknown_resource
from steersman.endpoints.scope import Scope
from steersman.machinery.errors.status import StatusError, bad_request, not_found
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.large_work.sizes import is_large
from steersman.rest.context import Context
from steersman.storage.cache.entry import Entry
from steersman.storage.interface import SEALED, KeyValue, Storage
from steersman.store.store import Store
from steersman.work.offloading import offload_if
from steersman.work.patterns import late_pattern
from steersman.work.yielding import time_sliced

_LONGEST: Final = 4 << 10
"""Characters of a path."""
_DEFINED_GROUP: Final = late_pattern(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+", re.ASCII)
_PLURAL: Final = late_pattern(r"[a-z0-9][a-z0-9-]*", re.ASCII)

Removed = Callable[[GroupResource, str], Storage | None]
"""Function (resource, key prefix) -> the storage of a resource that is not served; None if the prefix is another's."""


class Subject(Struct, frozen=True):
    """An object (`is_key`) or a collection in storage; `prefix` is its key, or the prefix of its keys.

    `scope` is the served resource, None for a resource whose definition is gone.
    """

    action: Action
    storage: Storage
    prefix: str
    is_key: bool
    scope: Scope[Store[Any]] | None
    root: str

    @property
    def is_secret(self) -> bool:
        """True for Secrets."""
        return self.action.resource == "secrets" and not self.action.group

    def not_found(self) -> StatusError:
        """Return 404 for an object that did not exist."""
        return not_found(GroupResource(self.action.group, self.action.resource), self.action.name)

    def names(self, key: str) -> tuple[str, str]:
        """Return namespace and name of the object with this key."""
        *above, name = key.removeprefix(self.root).split("/")
        return (above[-1] if above else ""), name

    async def bodies(self, request: Request, items: Sequence[KeyValue]) -> list[bytes]:
        """Return stored values in the requested version, from kind and apiVersion on; b"" for an encrypted one that
        cannot be read.

        Raises StatusError if values cannot be converted.
        """
        readable = [each for each in items if not each.value.startswith(SEALED)]
        found = dict(zip(map(id, readable), await self._readable(request, readable), strict=True))
        return [found.get(id(each), b"") for each in items]

    async def _readable(self, request: Request, items: Sequence[KeyValue]) -> list[bytes]:
        scope = self.scope
        if scope is None:
            return [each.value.rstrip(b"\n") for each in items]
        store = scope.storage
        if store.kind.is_cold:
            await offload_if(True, store.kind.warm)
        entries: Sequence[Any] = [
            Entry(
                each.key,
                await offload_if(is_large(each.value), store.kind.present, each.value, each.mod_revision),
                each.mod_revision,
            )
            async for each in time_sliced(items)
        ]
        if store.converts:
            entries = await store.in_request_version(Context(request.user, self.action), entries)
        return [
            scope.prefix + await offload_if(is_large(each.body), scope.body, each)
            async for each in time_sliced(entries)
        ]


async def subject_of(
    request: Request, path: str, catalogue: Catalogue, authorizer: Authorizer, storage: Storage, removed: Removed
) -> Subject:
    """Return the subject of a path such as `/api/v1/namespaces/default/pods/web`.

    The user needs the right to get the object, or to list the collection. Raises StatusError 400, 403, 404.
    """
    if len(path) > _LONGEST:
        raise bad_request(f"a path may have {_LONGEST} characters")
    try:
        info = read_request_info("GET", path, "")
    except BadRequestInfo as error:
        raise bad_request(str(error)) from None
    action = info.action
    if not _is_text(info):
        raise bad_request("the path is not UTF-8")
    if not info.resource_request or action.verb not in ("get", "list") or action.subresource:
        raise unknown_resource()
    attributes = Attributes(request.user, action)
    verdict = await decide(authorizer, attributes)
    if verdict.decision is not Decision.ALLOW:
        raise refusal(attributes, verdict)
    found = catalogue.served_as(action.group, action.version, action.resource)
    if found is None:
        return _of_removed(info, removed)
    route = catalogue.routes.get(info.template)
    if route is None or not route.is_judged(info):
        raise unknown_resource()
    entry, served = found
    store = entry.storage
    if not isinstance(store, Store):
        raise StatusError(404, "NotFound", f"{action.resource} are not stored")
    scope = Scope(served.resource, served.other, store, catalogue.shared)
    key = store.key(action.namespace, action.name) if action.name else store.collection(action.namespace)
    return Subject(action, store.storage, key, bool(action.name), scope, store.prefix)


def _is_text(info: RequestInfo) -> bool:
    """Return True if the parts of a path, which clients may escape as any bytes, can be part of a key."""
    try:
        info.path.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in info.path


def _of_removed(info: RequestInfo, removed: Removed) -> Subject:
    """Return the subject of a resource that is not served, such as one whose definition is gone. Raises StatusError 404.

    Names are checked here, as no route does, so that the key is below the prefix of this group and plural.
    """
    action = info.action
    names = (action.namespace, action.name)
    if (
        not _DEFINED_GROUP.fullmatch(action.group)
        or not _PLURAL.fullmatch(action.resource)
        or any(name in (".", "..") or "/" in name for name in names)
    ):
        raise unknown_resource()
    root = f"/registry/{action.group}/{action.resource}/"
    storage = removed(GroupResource(action.group, action.resource), root)
    if storage is None:
        raise unknown_resource()
    prefix = root + (f"{action.namespace}/" if action.namespace else "") + action.name
    return Subject(action, storage, prefix, bool(action.name), None, root)
