"""Namespaces: the scopes of names. A namespace is removed only after its finalizers have been removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import Namespace
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.validation.formats import is_qualified_name
from steersman.machinery.validation.object_meta import name_is_dns_label
from steersman.machinery.values.times import now
from steersman.registry.preconditions import check_preconditions
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource, Subresource
from steersman.rest.strategy import Strategy

FINALIZER: Final = "kubernetes"
"""The finalizer in `spec.finalizers` that the namespace controller removes once a namespace is empty."""
NAME_LABEL: Final = "kubernetes.io/metadata.name"
ACTIVE: Final = "Active"
TERMINATING: Final = "Terminating"

_STANDARD_FINALIZERS: Final = frozenset({FINALIZER, "orphan", "foregroundDeletion"})
_FINALIZERS: Final = Path("spec", "finalizers")


def _validate_finalizer(name: str, path: Path) -> Iterator[FieldError]:
    faults = is_qualified_name(name)
    for message in faults:
        yield invalid(path, name, message)
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        yield invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")


class NamespaceStrategy(Strategy[Namespace]):
    resets = ("status",)

    def prepare_for_create(self, ctx: Context, obj: Namespace) -> None:
        super().prepare_for_create(ctx, obj)
        obj.status.phase = ACTIVE
        if FINALIZER not in obj.spec.finalizers:
            obj.spec.finalizers.append(FINALIZER)

    def validate(self, ctx: Context, obj: Namespace) -> Iterator[FieldError]:
        for name in obj.spec.finalizers:
            yield from _validate_finalizer(name, _FINALIZERS)

    def canonicalize(self, obj: Namespace) -> None:
        default_labels(obj)

    def prepare_for_update(self, ctx: Context, new: Namespace, old: Namespace) -> None:
        super().prepare_for_update(ctx, new, old)
        new.spec.finalizers = old.spec.finalizers

    def validate_update(self, ctx: Context, new: Namespace, old: Namespace) -> Iterator[FieldError]:
        return self.validate(ctx, new)

    def check_preconditions(self, ctx: Context, options: DeleteOptions, metadata: ObjectMeta) -> None:
        """Check preconditions with the messages of the namespace storage (pkg/registry/core/namespace/storage)."""
        check_preconditions(options, metadata, GroupResource("", "namespaces"))

    def begin_delete(self, ctx: Context, obj: Namespace) -> bool:
        """Mark the namespace as Terminating on the first DELETE, and keep it while the spec has finalizers."""
        if obj.metadata.deletion_timestamp is not None:
            return bool(obj.spec.finalizers)
        obj.metadata.deletion_timestamp = now()
        obj.status.phase = TERMINATING
        return True

    def may_delete_during_update(self, ctx: Context, new: Namespace, old: Namespace) -> bool:
        return not new.spec.finalizers


class NamespaceStatusStrategy(NamespaceStrategy):
    resets = ("spec",)

    def validate_update(self, ctx: Context, new: Namespace, old: Namespace) -> Iterator[FieldError]:
        path = Path("status", "Phase")
        if not new.metadata.deletion_timestamp:
            if new.status.phase != ACTIVE:
                yield invalid(path, new.status.phase, "may only be 'Active' if `deletionTimestamp` is empty")
        elif new.status.phase != TERMINATING:
            yield invalid(path, new.status.phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")


class NamespaceFinalizeStrategy(NamespaceStrategy):
    """The strategy of `/finalize`, where the namespace controller removes its finalizer."""

    def prepare_for_update(self, ctx: Context, new: Namespace, old: Namespace) -> None:
        Strategy.prepare_for_update(self, ctx, new, old)

    def validate_update(self, ctx: Context, new: Namespace, old: Namespace) -> Iterator[FieldError]:
        for index, name in enumerate(new.spec.finalizers):
            yield from _validate_finalizer(name, _FINALIZERS[index])


def default_labels(namespace: Namespace) -> None:
    """Label a namespace with its name, so that selectors can match it."""
    if namespace.metadata.name:
        namespace.metadata.labels[NAME_LABEL] = namespace.metadata.name


def default_namespace(namespace: Namespace) -> None:
    """Set the defaults of SetDefaults_Namespace and SetDefaults_NamespaceStatus."""
    default_labels(namespace)
    if not namespace.status.phase:
        namespace.status.phase = ACTIVE


NAMESPACES: Final = Resource(
    kind=built_in(Namespace, default=default_namespace),
    plural="namespaces",
    namespaced=False,
    short_names=("ns",),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    strategy=NamespaceStrategy(),
    name_validator=name_is_dns_label,
    revalidates_metadata=True,
    columns=(Column("Status", lambda n: n.status.phase, description="The status of the namespace"), AGE),
    selectable_fields={"status.phase": lambda n: n.status.phase},
    subresources=(
        Subresource(name="finalize", verbs=("update",), strategy=NamespaceFinalizeStrategy()),
        Subresource(name="status", strategy=NamespaceStatusStrategy()),
    ),
    storage_version_hash="Q3oi5N2YM8M=",
    returns_deleted_object=True,
)
