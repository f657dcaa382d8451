"""The Strategy: what is special about a kind when it is created, updated or deleted.

The store calls the hooks in a fixed order (k8s.io/apiserver `registry/rest/{create,update,delete}.go`):

- create: `prepare_for_create`, `validate`, `warnings_on_create`, `canonicalize`
- update: `prepare_for_update`, `validate_update` (which includes what create validates, where upstream's does),
  `warnings_on_update`, `canonicalize`
- delete: `warnings_on_delete`, `check_graceful_delete`; where the latter says so the object stays for its grace period

Validation of `metadata` is the store's; a strategy validates the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.kinds.open import OpenObject
from steersman.machinery.errors.field import FieldError
from steersman.machinery.go.strings import to_lower
from steersman.rest.context import Context
from steersman.rest.needs import S

T = TypeVar("T")

MetadataChecks = Literal["twice", "finalizers", "once"]
GarbageCollection = Literal["background", "orphan", "unsupported"]

NameValidator = Callable[[str, bool], list[str]]
"""What is wrong with a name; the flag says that it is the prefix of a generated one."""

_STATUS: Final = "status"
_RARE: Final = ("judges_metadata_last", "warnings_on_create", "warnings_on_update", "canonicalize", "check_stored")
"""Hooks that few kinds have."""
_UPPER: Final = re.compile("[A-Z]")

ANY_NAME: Final[NameValidator] = lambda name, prefix: []  # noqa: E731


class Strategy(Generic[T, S]):
    """The usual behaviour of a kind; a resource overrides what differs. `T` is the hub version's Struct."""

    allow_create_on_update: bool = False
    allow_unconditional_update: bool = True
    metadata_on_update: MetadataChecks = "finalizers"
    """How often upstream looks at the metadata of an update, which clients see from repeated causes: once for all
    kinds, mostly again in the ValidateUpdate of the kind, and then mostly also at the names of finalizers."""
    garbage_collection: GarbageCollection = "background"
    """What becomes of dependents when a DELETE does not say."""
    resets: tuple[str, ...] = ()
    """Fields that a write here does not set, whatever is sent: paths such as "status" and "metadata/labels" (upstream's
    GetResetFields). A new object has them empty, an updated one as they were, and who sends them does not own them.
    "metadata" is all of it that clients set."""
    bumps_generation_on: tuple[str, ...] = ()
    """Fields whose change begins the object's next generation. Where there are any, a new object is of the first."""

    does: ClassVar[frozenset[str]] = frozenset()
    """The hooks that a class overrides, of those that are rarely overridden: no others of them are called."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.does = frozenset(name for name in _RARE if getattr(cls, name) is not getattr(Strategy, name))

    def resets_in(self, version: str) -> tuple[str, ...]:
        """Return `resets` for requests in one version."""
        return self.resets

    def bind(self, services: S) -> Strategy[T]:
        """This strategy with what it needs of the rest of the server; itself if that is nothing."""
        return self

    def prepare_for_create(self, ctx: Context, obj: T) -> None:
        """Set and clear what the server decides: `resets` and the generation. Others add to it."""
        for name in self.resets:
            setattr(obj, name, type(getattr(obj, name))())
        if self.bumps_generation_on:
            obj.metadata.generation = 1  # type: ignore[attr-defined]

    def validate(self, ctx: Context, obj: T) -> Iterator[FieldError]:
        """What is wrong with a new object."""
        return iter(())

    def judges_metadata_last(self, ctx: Context) -> bool:
        """Return True for kinds whose metadata is judged only if `validate` finds nothing wrong with a new object."""
        return False

    def warnings_on_create(self, ctx: Context, obj: T) -> Iterator[str]:
        """What the client should be told about an object that is valid."""
        return iter(())

    def prepare_for_update(self, ctx: Context, new: T, old: T) -> None:
        """Keep in `new` what this endpoint may not change, and begin a generation; others do their part before."""
        keep(new, old, self.resets)
        for path in self.bumps_generation_on:
            if _differs(new, old, path):
                new.metadata.generation = old.metadata.generation + 1  # type: ignore[attr-defined]
                return

    def validate_update(self, ctx: Context, new: T, old: T) -> Iterator[FieldError]:
        """What is wrong with replacing `old` by `new`."""
        return iter(())

    def warnings_on_update(self, ctx: Context, new: T, old: T) -> Iterator[str]:
        """What the client should be told about a valid update."""
        return iter(())

    def canonicalize(self, obj: T) -> None:
        """Brings a valid object into its one stored form."""

    def check_stored(self, ctx: Context, obj: T) -> None:
        """Raises StatusError for a new object that may not be stored any more: called last, in the turn of the loop in
        which the storage is given it."""

    def check_delete(self, ctx: Context, name: str) -> None:
        """Raises StatusError for an object that may not be deleted by its name, whether it is there or not."""

    def warnings_on_delete(self, ctx: Context, options: DeleteOptions) -> Iterator[str]:
        """What the client should be told about the way it deletes an object, or a collection, of this kind."""
        return iter(())

    def check_graceful_delete(self, ctx: Context, obj: T, options: DeleteOptions) -> bool:
        """Whether the object is to be kept for a grace period; may set `options.grace_period_seconds`."""
        return False

    def check_preconditions(self, ctx: Context, options: DeleteOptions, metadata: ObjectMeta) -> None:
        """For kinds that tell in words of their own that what is to be deleted is not what the client means; raises
        StatusError 409. What passes is judged as for all kinds then."""

    def begin_delete(self, ctx: Context, obj: T) -> bool:
        """For kinds that finalize themselves (namespaces): marks `obj` in place as going, and says that it must stay
        for now. False lets the deletion go on."""
        return False

    def may_delete_during_update(self, ctx: Context, new: T, old: T) -> bool:
        """Whether an update that takes the last finalizer of a deleted object really deletes it."""
        return True


class StatusStrategy(Strategy[T]):
    """Base of the strategies of `/status`: an update keeps everything of the old object but status and metadata."""

    resets: tuple[str, ...] = ("spec",)

    def prepare_for_update(self, ctx: Context, new: T, old: T) -> None:
        if isinstance(new, OpenObject):
            assert isinstance(old, OpenObject)
            new.content = {name: value for name, value in old.content.items() if name != _STATUS} | (
                {_STATUS: new.content[_STATUS]} if _STATUS in new.content else {}
            )
            return
        super().prepare_for_update(ctx, new, old)


def keep(new: Any, old: Any, paths: Iterable[str]) -> None:
    """Give the fields on `paths` back the values of the old object."""
    for path in paths:
        if path == "metadata":
            _keep_metadata(new.metadata, old.metadata)
            continue
        parent, _, name = path.rpartition("/")
        if parent:
            attribute = _attribute(name)
            setattr(getattr(new, parent), attribute, getattr(getattr(old, parent), attribute))
        else:
            setattr(new, name, getattr(old, name))


def _keep_metadata(new: ObjectMeta, old: ObjectMeta) -> None:
    """Undo every change of metadata but that of managedFields, as apimachinery's ResetObjectMetaForStatus."""
    new.deletion_timestamp = old.deletion_timestamp
    new.generation = old.generation
    new.self_link = old.self_link
    new.labels = old.labels
    new.annotations = old.annotations
    new.finalizers = old.finalizers
    new.owner_references = old.owner_references


def _differs(new: Any, old: Any, path: str) -> bool:
    parent, _, name = path.rpartition("/")
    if parent:
        new, old, name = getattr(new, parent), getattr(old, parent), _attribute(name)
    now, then = getattr(new, name), getattr(old, name)
    return now is not then and bool(now != then)


def _attribute(name: str) -> str:
    """Return the attribute of a field: "owner_references" of "ownerReferences"."""
    return to_lower(_UPPER.sub(r"_\g<0>", name))
