"""The Strategy: the behaviour of a kind on create, update and delete.

The store calls the hooks in a fixed order (k8s.io/apiserver `registry/rest/{create,update,delete}.go`):

- create: `prepare_for_create`, `validate`, `warnings_on_create`, `canonicalize`
- update: `prepare_for_update`, `validate_update` (which includes what create validates, where upstream's does),
  `warnings_on_update`, `canonicalize`
- delete: `warnings_on_delete`, `check_graceful_delete`; after True the object stays for its grace period

The store validates `metadata`; a strategy validates the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.kinds.open import OpenObject
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.leaves import validate_immutable
from steersman.rest.context import Context
from steersman.rest.needs import S
from steersman.work.patterns import late_pattern

T = TypeVar("T")

MetadataChecks = Literal["twice", "finalizers", "once"]
GarbageCollection = Literal["background", "orphan", "unsupported"]

NameValidator = Callable[[str, bool], list[str]]
"""Returns the errors of a name; the flag says that the name is the prefix of a generated name."""

_STATUS: Final = "status"
_RARE: Final = ("validates_metadata_last", "warnings_on_create", "warnings_on_update", "canonicalize", "check_stored")
"""Hooks that few kinds override."""
_UPPER: Final = late_pattern("[A-Z]")


def _accept_any_name(name: str, prefix: bool) -> list[str]:
    """Return no error texts, whatever the name."""
    return []


ANY_NAME: Final[NameValidator] = _accept_any_name


class Strategy(Generic[T, S]):
    """The default behaviour of a kind; a resource overrides what differs. `T` is the hub version's Struct."""

    allow_create_on_update: bool = False
    allow_unconditional_update: bool = True
    metadata_on_update: MetadataChecks = "finalizers"
    """The passes of upstream over the metadata of an update, which clients see as repeated causes of an error.

    Every kind has one pass. Most kinds have another in their ValidateUpdate, and most of these check the names of
    finalizers in it, too.
    """
    garbage_collection: GarbageCollection = "background"
    """The propagation policy of a DELETE that gives none."""
    resets: tuple[str, ...] = ()
    """Fields that a write to this endpoint does not set: paths such as "status" and "metadata/labels" (upstream's
    GetResetFields). They are empty in a new object and keep their values in an updated one, and a client that sends
    them does not own them. "metadata" stands for all metadata that clients set.
    """
    bumps_generation_on: tuple[str, ...] = ()
    """Fields whose change increments the object's generation. If there are any, a new object has generation 1."""

    immutable: tuple[str, ...] = ()
    """Fields that an update may not change, for `validate_update`: paths such as "spec/volumeMode"."""

    does: ClassVar[frozenset[str]] = frozenset()
    """The rarely overridden hooks that a class overrides; of these hooks only the overridden ones are called."""
    _immutable: ClassVar[tuple[tuple[Callable[[Any], Any], Path], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        names = {name for name in (*_RARE, "warnings") if getattr(cls, name) is not getattr(Strategy, name)}
        if "warnings" in names:
            names = names - {"warnings"} | {"warnings_on_create", "warnings_on_update"}
        cls.does = frozenset(names)
        cls._immutable = tuple(
            (attrgetter(".".join(map(_attribute, path.split("/")))), Path(*path.split("/"))) for path in cls.immutable
        )

    def resets_in(self, version: str) -> tuple[str, ...]:
        """Return `resets` for requests in one version."""
        return self.resets

    def bind(self, services: S) -> Strategy[T]:
        """Return this strategy with the services that it needs; itself if it needs none."""
        return self

    def prepare_for_create(self, ctx: Context, obj: T) -> None:
        """Set and clear the fields that the server decides: `resets` and the generation. Subclasses add to it."""
        for name in self.resets:
            setattr(obj, name, type(getattr(obj, name))())
        if self.bumps_generation_on:
            obj.metadata.generation = 1  # type: ignore[attr-defined]

    def validate(self, ctx: Context, obj: T) -> Iterator[FieldError]:
        """Yield the errors of a new object."""
        return iter(())

    def validates_metadata_last(self, ctx: Context) -> bool:
        """Return True if the metadata is validated only if `validate` finds no errors in a new object."""
        return False

    def warnings(self, ctx: Context, obj: T) -> Iterator[str]:
        """Yield warnings for the client about a valid object, new or updated."""
        return iter(())

    def warnings_on_create(self, ctx: Context, obj: T) -> Iterator[str]:
        """Yield warnings for the client about a valid new object."""
        return self.warnings(ctx, obj)

    def prepare_for_update(self, ctx: Context, new: T, old: T) -> None:
        """Keep in `new` the fields that this endpoint may not change, then increment the generation if needed.

        Subclasses do their own preparation before they call this.
        """
        restore_fields(new, old, self.resets)
        for path in self.bumps_generation_on:
            if _differs(new, old, path):
                new.metadata.generation = old.metadata.generation + 1  # type: ignore[attr-defined]
                return

    def validate_update(self, ctx: Context, new: T, old: T) -> Iterator[FieldError]:
        """Yield the errors of replacing `old` by `new`; here, of changes of `immutable` fields."""
        for get, path in self._immutable:
            yield from validate_immutable(get(new), get(old), path)

    def warnings_on_update(self, ctx: Context, new: T, old: T) -> Iterator[str]:
        """Yield warnings for the client about a valid update."""
        return self.warnings(ctx, new)

    def canonicalize(self, obj: T) -> None:
        """Bring a valid object into the canonical form that is stored."""

    def check_stored(self, ctx: Context, obj: T) -> None:
        """Raise StatusError if a new object may not be stored any more.

        Called last, in the step of the event loop that hands the object to the storage.
        """

    def check_delete(self, ctx: Context, name: str) -> None:
        """Raise StatusError if the object of this name may not be deleted, whether it exists or not."""

    def warnings_on_delete(self, ctx: Context, options: DeleteOptions) -> Iterator[str]:
        """Yield warnings for a client about its way of deleting an object, or a collection, of this kind."""
        return iter(())

    def check_graceful_delete(self, ctx: Context, obj: T, options: DeleteOptions) -> bool:
        """Return True if the object is to be kept for a grace period; may set `options.grace_period_seconds`."""
        return False

    def check_preconditions(self, ctx: Context, options: DeleteOptions, metadata: ObjectMeta) -> None:
        """Raise StatusError 409 for failed preconditions, for kinds that have their own message for it.

        The checks that are common to all kinds follow.
        """

    def begin_delete(self, ctx: Context, obj: T) -> bool:
        """Mark `obj` in place as terminating and return True if it must stay for now, for kinds that finalize
        themselves (namespaces). False lets the deletion go on.
        """
        return False

    def may_delete_during_update(self, ctx: Context, new: T, old: T) -> bool:
        """Return True if an update that removes the last finalizer of a deleted object really deletes it."""
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


def restore_fields(new: Any, old: Any, paths: Iterable[str]) -> None:
    """Restore the fields on `paths` of `new` to their values in `old`."""
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
    """Return the attribute of a field: "owner_references" for "ownerReferences"."""
    return to_lower(_UPPER.sub(r"_\g<0>", name))
