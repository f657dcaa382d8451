"""Changes of `metadata` on every create, update and delete, for all kinds.

Follows k8s.io/apiserver `registry/rest/{meta,create,update,delete}.go`.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.machinery.errors.status import bad_request, conflict, internal, invalid
from steersman.machinery.identity.names import new_uid
from steersman.machinery.identity.schema import GroupKind, GroupResource
from steersman.machinery.validation.options import validate_delete_options
from steersman.machinery.values import times
from steersman.rest.context import Context
from steersman.rest.strategy import Strategy

ORPHAN_FINALIZER: Final = "orphan"
FOREGROUND_FINALIZER: Final = "foregroundDeletion"
_COLLECTOR_FINALIZERS: Final = frozenset({ORPHAN_FINALIZER, FOREGROUND_FINALIZER})


def fill_system_fields(metadata: ObjectMeta) -> None:
    """Set uid and creation time of a new object."""
    metadata.creation_timestamp = times.now()
    metadata.uid = new_uid()


def match_namespace(metadata: ObjectMeta, namespace: str) -> None:
    """Set the namespace of the URL, which the object may leave out but not contradict.

    If the URL has no namespace, neither has the kind, and the object's namespace is dropped. Raises StatusError 400.
    """
    if not metadata.namespace or not namespace:
        metadata.namespace = namespace
    elif metadata.namespace != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def keep_system_fields(new: ObjectMeta, old: ObjectMeta) -> None:
    """Restore the fields that no update can change."""
    if not new.uid:
        new.uid = old.uid
    if old.creation_timestamp:
        new.creation_timestamp = old.creation_timestamp
    if old.deletion_timestamp:
        new.deletion_timestamp = old.deletion_timestamp
    if old.deletion_grace_period_seconds is not None and new.deletion_grace_period_seconds is None:
        new.deletion_grace_period_seconds = old.deletion_grace_period_seconds


def check_preconditions(options: DeleteOptions, metadata: ObjectMeta, kind: GroupKind) -> None:
    """Raise StatusError 409 if the object is not the one, or not in the state, that the client wants to delete."""
    preconditions = options.preconditions
    if preconditions is None:
        return
    resource = GroupResource(kind.group, kind.kind)
    if preconditions.uid is not None and preconditions.uid != metadata.uid:
        raise conflict(
            resource,
            metadata.name,
            f"the UID in the precondition ({preconditions.uid}) does not match the UID in record ({metadata.uid}). "
            "The object might have been deleted and then recreated",
        )
    expected = preconditions.resource_version
    if expected is not None and expected != metadata.resource_version:
        raise conflict(
            resource,
            metadata.name,
            f"the ResourceVersion in the precondition ({expected}) does not match the ResourceVersion in record "
            f"({metadata.resource_version}). The object might have been modified",
        )


def before_delete(
    strategy: Strategy[Any], ctx: Context, obj: Any, options: DeleteOptions, kind: GroupKind
) -> tuple[bool, bool]:
    """Return two flags: the deletion is graceful; the deletion is already pending, so nothing remains to be done.

    Marks `obj` for a graceful deletion, and may set the grace period in `options`. Raises StatusError.
    """
    metadata: ObjectMeta = obj.metadata
    if errors := list(validate_delete_options(options)):
        raise invalid(GroupKind("meta.k8s.io", "DeleteOptions"), "", errors)
    strategy.check_preconditions(ctx, options, metadata)
    check_preconditions(options, metadata, kind)
    if options.grace_period_seconds is not None and options.grace_period_seconds < 0:
        options.grace_period_seconds = 1
    if metadata.deletion_grace_period_seconds is not None and metadata.deletion_grace_period_seconds < 0:
        metadata.deletion_grace_period_seconds = 1
    if not is_graceful(strategy):
        return False, False
    if metadata.deletion_timestamp is not None:
        return _shorten_grace(metadata, options)
    if not strategy.check_graceful_delete(ctx, obj, options):
        return False, False
    if options.grace_period_seconds is None:
        raise internal("options.GracePeriodSeconds should not be nil")
    metadata.deletion_timestamp = times.shifted(times.now(), options.grace_period_seconds)
    metadata.deletion_grace_period_seconds = options.grace_period_seconds
    if metadata.generation > 0:
        metadata.generation += 1
    return True, False


def is_graceful(strategy: Strategy[Any]) -> bool:
    """Return True if objects of this kind may be kept for a grace period."""
    return type(strategy).check_graceful_delete is not Strategy.check_graceful_delete


def _shorten_grace(metadata: ObjectMeta, options: DeleteOptions) -> tuple[bool, bool]:
    """Shorten the grace period of an object that is already being deleted; it cannot be extended."""
    remaining = metadata.deletion_grace_period_seconds
    if not remaining:
        return False, False
    grace = options.grace_period_seconds
    if grace is None:
        options.grace_period_seconds = remaining
        return False, True
    if grace >= remaining:
        return False, True
    assert metadata.deletion_timestamp is not None
    moved = times.shifted(times.shifted(metadata.deletion_timestamp, -remaining), grace)
    now = times.now()
    if moved < now:
        moved = now
        grace = 1 if grace else 0
    metadata.deletion_timestamp = moved
    metadata.deletion_grace_period_seconds = grace
    return True, False


def mark_as_deleting(metadata: ObjectMeta) -> None:
    """Mark an object as deleted now without a grace period, because finalizers still keep it."""
    now = times.now()
    if metadata.deletion_timestamp is None and metadata.generation > 0:
        metadata.generation += 1
    if metadata.deletion_timestamp is None or metadata.deletion_timestamp > now:
        metadata.deletion_timestamp = now
    metadata.deletion_grace_period_seconds = 0


def collector_finalizers(strategy: Strategy[Any], obj: Any, options: DeleteOptions) -> list[str] | None:
    """Return the finalizers that tell the garbage collector the fate of dependents; None if nothing changes."""
    if strategy.garbage_collection == "unsupported":
        return None
    present: list[str] = obj.metadata.finalizers
    # An object may have tens of thousands of finalizers: `in` is much faster than a loop.
    orphans = _orphans(strategy, obj, options)
    foreground = _foreground(present, options)
    if orphans is (ORPHAN_FINALIZER in present) and foreground is (FOREGROUND_FINALIZER in present):
        return None
    others = [name for name in present if name not in _COLLECTOR_FINALIZERS]
    if orphans:
        others.append(ORPHAN_FINALIZER)
    if foreground:
        others.append(FOREGROUND_FINALIZER)
    return others


def _orphans(strategy: Strategy[Any], obj: Any, options: DeleteOptions) -> bool:
    if options.orphan_dependents is not None:
        return options.orphan_dependents
    if options.propagation_policy is not None:
        return options.propagation_policy == "Orphan"
    first = _first_of_collector(obj.metadata.finalizers)
    return first == ORPHAN_FINALIZER if first else strategy.garbage_collection == "orphan"


def _foreground(present: list[str], options: DeleteOptions) -> bool:
    if options.orphan_dependents is not None:
        return False
    if options.propagation_policy is not None:
        return options.propagation_policy == "Foreground"
    return _first_of_collector(present) == FOREGROUND_FINALIZER


def _first_of_collector(present: list[str]) -> str:
    """Return the first of the garbage collector's finalizers, "" if there is none."""
    present_finalizers = [name for name in _COLLECTOR_FINALIZERS if name in present]
    return min(present_finalizers, key=present.index) if present_finalizers else ""


def should_delete_during_update(new: ObjectMeta, old: ObjectMeta) -> bool:
    """Return True if an update removed the last finalizer of an object whose grace period is over."""
    return not new.finalizers and old.deletion_timestamp is not None and not old.deletion_grace_period_seconds
