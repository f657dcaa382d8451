"""Controller references: indexes by controller, adoption and release of objects (pkg/controller
controller_ref_manager).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.client.api_resource import APIResource, Object
from steersman.client.client import STRATEGIC_MERGE_PATCH, Client
from steersman.client.errors import is_not_found
from steersman.client.informer import Informer, new_or_old
from steersman.machinery.errors.status import StatusError
from steersman.work.work_queue import TryLater
from steersman.work.yielding import time_sliced

O = TypeVar("O", bound=Object)  # noqa: E741

_CONTROLLER: Final = "controller"


def controller_of(obj: Object) -> OwnerReference | None:
    """Return the owner reference of an object's controller, None if the object has no controller."""
    for each in obj.metadata.owner_references:
        if each.controller:
            return each
    return None


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Return True if `owner` is the controller of an object."""
    controller = controller_of(obj)
    return controller is not None and controller.uid == owner.metadata.uid


def new_controller_ref(resource: APIResource[Any], owner: Object) -> OwnerReference:
    """Return an owner reference to `owner`, an object of `resource`, as controller."""
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def add_controller_index(informer: Informer[Any]) -> None:
    """Add an index of objects by their controller, and of objects without a controller by namespace."""
    informer.add_index(_CONTROLLER, _controllers)


def controlled_by(informer: Informer[O], uid: str) -> Sequence[O]:
    """Return the objects whose controller has this uid. The informer needs the index of `add_controller_index`."""
    return informer.indexed(_CONTROLLER, uid)


def orphans(informer: Informer[O], namespace: str) -> Sequence[O]:
    """Return the objects of a namespace without a controller. The informer needs the index of `add_controller_index`."""
    return informer.indexed(_CONTROLLER, _orphans_of(namespace))


def resolve(informer: Informer[O], namespace: str, ref: OwnerReference | None) -> O | None:
    """Return the object that a controller reference names, None if its kind or uid is another one."""
    if ref is None or ref.kind != informer.resource.kind:
        return None
    owner = informer.get(namespace, ref.name)
    return owner if owner is not None and owner.metadata.uid == ref.uid else None


def owners_of_change(owners: Informer[O], old: Object | None, new: Object | None) -> tuple[O | None, O | None]:
    """Return the controller that a changed object has lost (None if it has not changed), and its controller now."""
    before, after = (None if each is None else controller_of(each) for each in (old, new))
    namespace = new_or_old(old, new).metadata.namespace
    former = None if before == after else resolve(owners, namespace, before)
    return former, resolve(owners, namespace, after)


def possible_owners(
    owners: Informer[O], may_select: Callable[[O, Mapping[str, str]], bool], old: Object | None, new: Object
) -> Iterator[O]:
    """Yield the owners that may adopt a changed object which has newly lost its controller or has new labels.

    Raises SelectorError.
    """
    labels = new.metadata.labels
    if controller_of(new) is not None or new.metadata.deletion_timestamp or not labels:
        return
    if old is not None and controller_of(old) is None and old.metadata.labels == labels:
        return
    for each in owners.list(new.metadata.namespace):
        if may_select(each, labels):
            yield each


def _controllers(obj: Object) -> Iterable[str]:
    controller = controller_of(obj)
    return (_orphans_of(obj.metadata.namespace) if controller is None else controller.uid,)


def _orphans_of(namespace: str) -> str:
    return f"orphans of {namespace}"


class Claims(Generic[O]):
    """Adopts objects without a controller that `matches` selects, and releases own objects it no longer selects.

    An owner that is being deleted neither adopts nor releases. Adopted objects get `finalizers`, released ones lose
    them.
    """

    def __init__(
        self,
        client: Client,
        owner_resource: APIResource[Any],
        owner: Object,
        resource: APIResource[O],
        matches: Callable[[O], bool],
        *,
        finalizers: Sequence[str] = (),
    ) -> None:
        self._client = client
        self._owner_resource = owner_resource
        self._owner = owner
        self._resource = resource
        self._matches = matches
        self._finalizers = list(finalizers)
        self._may_adopt = False

    async def claim(self, objects: Iterable[O]) -> list[O]:
        """Adopt and release objects, and return those that `owner` controls then.

        Raises the first StatusError or TryLater after all objects have been tried; Unreachable at once.
        """
        claimed: list[O] = []
        errors: list[StatusError | TryLater] = []
        uid, matches = self._owner.metadata.uid, self._matches
        async for obj in time_sliced(objects):
            controller = controller_of(obj)
            if controller is not None and (controller.uid != uid or matches(obj)):
                if controller.uid == uid:
                    claimed.append(obj)
                continue
            try:
                if await self._claim(obj, is_own=controller is not None):
                    claimed.append(obj)
            except (StatusError, TryLater) as error:
                if not (isinstance(error, StatusError) and is_not_found(error)):
                    errors.append(error)
        if errors:
            raise errors[0]
        return claimed

    async def _claim(self, obj: O, *, is_own: bool) -> bool:
        """Adopt or release an object. Return True if it is the owner's then."""
        owner = self._owner.metadata
        if is_own:
            if not owner.deletion_timestamp:
                await self._release(obj)
            return False
        if owner.deletion_timestamp or obj.metadata.deletion_timestamp or not self._matches(obj):
            return False
        await self._adopt(obj)
        return True

    async def _adopt(self, obj: O) -> None:
        if not self._may_adopt:
            await self._recheck(obj)
            self._may_adopt = True
        reference = new_controller_ref(self._owner_resource, self._owner)
        metadata: dict[str, Any] = {"uid": obj.metadata.uid, "ownerReferences": [reference]}
        if self._finalizers:
            metadata["finalizers"] = self._finalizers
        await self._patch(obj.metadata, metadata)

    async def _recheck(self, obj: O) -> None:
        """Check at the server that the owner still exists and is not being deleted. Raises TryLater if not."""
        owner = self._owner.metadata
        name = f"can't adopt {self._resource.kind} {obj.metadata.namespace}/{obj.metadata.name} ({obj.metadata.uid})"
        try:
            fresh: Any = await self._client.get(self._owner_resource, owner.name, owner.namespace)
        except StatusError as error:
            raise TryLater(f"{name}: can't recheck DeletionTimestamp: {error}") from error
        if fresh.metadata.uid != owner.uid:
            raise TryLater(
                f"{name}: can't recheck DeletionTimestamp: original {self._owner_resource.kind} "
                f"{owner.namespace}/{owner.name} is gone: got uid {fresh.metadata.uid}, wanted {owner.uid}"
            )
        if fresh.metadata.deletion_timestamp:
            raise TryLater(
                f"{name}: {owner.namespace}/{owner.name} has just been deleted at {fresh.metadata.deletion_timestamp}"
            )

    async def _release(self, obj: O) -> None:
        metadata: dict[str, Any] = {
            "uid": obj.metadata.uid,
            "ownerReferences": [{"$patch": "delete", "uid": self._owner.metadata.uid}],
        }
        if self._finalizers:
            metadata["$deleteFromPrimitiveList/finalizers"] = self._finalizers
        try:
            await self._patch(obj.metadata, metadata)
        except StatusError as error:
            # Invalid: another object has this name now, or the reference has been removed already.
            if not is_not_found(error) and error.reason != "Invalid":
                raise

    def _patch(self, of: ObjectMeta, metadata: dict[str, Any]) -> Awaitable[O]:
        return self._client.patch(
            self._resource, of.name, of.namespace, {"metadata": metadata}, media=STRATEGIC_MERGE_PATCH
        )
