"""Validation of request options in a query or a DeleteOptions body.

Follows k8s.io/apimachinery `apis/meta/v1/validation` and `apis/meta/internalversion/validation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.validation.managed_fields import validate_field_manager

if TYPE_CHECKING:
    from steersman.api.meta.v1 import (
        CreateOptions,
        DeleteOptions,
        ListOptions,
        PatchOptions,
        TableOptions,
        UpdateOptions,
    )

_DRY_RUN: Final = ("All",)
_FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")
_PROPAGATION: Final = ("Foreground", "Background", "Orphan")
_EXACT: Final = "Exact"
_NOT_OLDER_THAN: Final = "NotOlderThan"
_INCLUDE_OBJECT: Final = ("", "Metadata", "Object", "None")

_MATCH: Final = Path("resourceVersionMatch")
_SEND_INITIAL_EVENTS: Final = Path("sendInitialEvents")


def validate_dry_run(dry_run: Sequence[str], path: Path) -> Iterator[FieldError]:
    """Validate `dryRun`: empty, or `All`."""
    if not all(value in _DRY_RUN for value in dry_run):
        yield field.not_supported(path, list(dry_run), _DRY_RUN)


def validate_field_validation(directive: str, path: Path) -> Iterator[FieldError]:
    """Validate `fieldValidation`, which tells how unknown and duplicate fields are treated."""
    if directive not in _FIELD_VALIDATION:
        yield field.not_supported(path, directive, _FIELD_VALIDATION)


def validate_write_options(options: CreateOptions | UpdateOptions | PatchOptions) -> Iterator[FieldError]:
    """Validate the options of a create or an update, and those that a patch shares with them."""
    yield from validate_field_manager(options.field_manager, Path("fieldManager"))
    yield from validate_dry_run(options.dry_run, Path("dryRun"))
    yield from validate_field_validation(options.field_validation, Path("fieldValidation"))


def validate_patch_options(options: PatchOptions, *, apply: bool) -> Iterator[FieldError]:
    """Validate the options of a patch; `apply` is True for server-side apply, in YAML or CBOR."""
    if apply:
        if not options.field_manager:
            yield field.required(Path("fieldManager"), "is required for apply patch")
    elif options.force is not None:
        yield field.forbidden(Path("force"), "may not be specified for non-apply patch")
    yield from validate_write_options(options)


def validate_delete_options(options: DeleteOptions) -> Iterator[FieldError]:
    """Validate the options of a delete or a delete of a collection."""
    path = Path("propagationPolicy")
    policy = options.propagation_policy
    if options.orphan_dependents is not None and policy is not None:
        yield field.invalid(path, policy, "orphanDependents and deletionPropagation cannot be both set")
    if policy is not None and policy not in _PROPAGATION:
        yield field.not_supported(path, policy, (*_PROPAGATION, "nil"))
    yield from validate_dry_run(options.dry_run, Path("dryRun"))
    yield from _validate_ignore_store_read_error(options)


def _validate_ignore_store_read_error(options: DeleteOptions) -> Iterator[FieldError]:
    """Validate that a deletion of an unreadable object, which ignores all other options, has none of them."""
    if not options.ignore_store_read_error_with_cluster_breaking_potential:
        return
    path = Path("ignoreStoreReadErrorWithClusterBreakingPotential")
    others = {
        "dryRun": options.dry_run or None,
        "propagationPolicy": options.propagation_policy,
        "orphanDependents": options.orphan_dependents,
        "gracePeriodSeconds": options.grace_period_seconds,
        "preconditions": options.preconditions,
    }
    for name, value in others.items():
        if value is not None:
            yield field.invalid(path, True, f"cannot be set together with .{name}")


def validate_list_options(options: ListOptions, *, watch_list: bool = True) -> Iterator[FieldError]:
    """Validate the options of a list, a watch, or a delete of a collection.

    With `watch_list` watches may ask for initial events.
    """
    if options.watch:
        yield from _validate_watch_options(options, watch_list=watch_list)
        return
    match = options.resource_version_match
    if match:
        if not options.resource_version:
            yield field.forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        if options.continue_:
            yield field.forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")
        if match not in (_EXACT, _NOT_OLDER_THAN):
            yield field.not_supported(_MATCH, match, (_EXACT, _NOT_OLDER_THAN, ""))
        if match == _EXACT and options.resource_version == "0":
            yield field.forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if options.send_initial_events is not None:
        yield field.forbidden(_SEND_INITIAL_EVENTS, "sendInitialEvents is forbidden for list")


def _validate_watch_options(options: ListOptions, *, watch_list: bool) -> Iterator[FieldError]:
    match = options.resource_version_match
    initial = options.send_initial_events is not None
    if initial:
        if match != _NOT_OLDER_THAN:
            text = f"sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER_THAN}"
            yield field.forbidden(_MATCH, text)
        if not watch_list:
            text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            yield field.forbidden(_SEND_INITIAL_EVENTS, text)
    if not match:
        return
    if not initial:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        yield field.forbidden(_MATCH, text)
    if match != _NOT_OLDER_THAN:
        yield field.not_supported(_MATCH, match, (_NOT_OLDER_THAN,))
    if options.continue_:
        yield field.forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")


def validate_table_options(options: TableOptions) -> Iterator[FieldError]:
    """Validate the options of a list as a Table."""
    if options.include_object not in _INCLUDE_OBJECT:
        text = "must be 'Metadata', 'Object', 'None', or empty"
        yield field.invalid(Path("includeObject"), options.include_object, text)
