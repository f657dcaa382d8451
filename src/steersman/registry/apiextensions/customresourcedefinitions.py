"""CustomResourceDefinitions: kinds that users add to a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from steersman.api.apiextensions.v1 import CustomResourceDefinition, CustomResourceDefinitionStatus
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.values.times import now
from steersman.registry.apiextensions.conditions import set_condition
from steersman.registry.apiextensions.defaults import set_defaults, storage_version
from steersman.registry.apiextensions.format_warnings import unrecognized_formats, warning
from steersman.registry.apiextensions.internal import InternalSpec, equal_as_json
from steersman.registry.apiextensions.names import definition_name
from steersman.registry.columns import CREATED_AT
from steersman.registry.preconditions import check_preconditions
from steersman.rest.context import Context
from steersman.rest.resource import OtherVersion, Resource, Subresource
from steersman.rest.strategy import StatusStrategy, Strategy

GROUP: Final = "apiextensions.k8s.io"
CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that is removed once no object of the kind is left."""

_MARKED: Final = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"


class CustomResourceDefinitionStrategy(Strategy[CustomResourceDefinition]):
    allow_unconditional_update = False
    metadata_on_update = "twice"
    resets = ("status",)

    def prepare_for_create(self, ctx: Context, definition: CustomResourceDefinition) -> None:
        definition.status = CustomResourceDefinitionStatus(stored_versions=storage_version(definition))
        definition.metadata.generation = 1

    def validate(self, ctx: Context, definition: CustomResourceDefinition) -> Iterator[FieldError]:
        # Imported on first use: the import is slow and startup does not need it.
        from steersman.registry.apiextensions.validation import validate_definition

        return validate_definition(definition)

    def warnings_on_create(self, ctx: Context, definition: CustomResourceDefinition) -> Iterator[str]:
        return (warning(name) for name in unrecognized_formats(InternalSpec(definition.spec)))

    def prepare_for_update(self, ctx: Context, new: CustomResourceDefinition, old: CustomResourceDefinition) -> None:
        new.status = old.status
        if not equal_as_json(new.spec, old.spec):
            new.metadata.generation = old.metadata.generation + 1
        stored = new.status.stored_versions or []
        added = [name for name in storage_version(new) or () if name not in stored]
        if added:
            new.status = replace(new.status, stored_versions=[*stored, *added])

    def validate_update(
        self, ctx: Context, new: CustomResourceDefinition, old: CustomResourceDefinition
    ) -> Iterator[FieldError]:
        from steersman.registry.apiextensions.validation import validate_definition_update  # as above

        return validate_definition_update(new, old)

    def warnings_on_update(
        self, ctx: Context, new: CustomResourceDefinition, old: CustomResourceDefinition
    ) -> Iterator[str]:
        known = set(unrecognized_formats(InternalSpec(old.spec)))
        return (warning(name) for name in unrecognized_formats(InternalSpec(new.spec)) if name not in known)

    def check_preconditions(self, ctx: Context, options: DeleteOptions, metadata: ObjectMeta) -> None:
        check_preconditions(options, metadata, GroupResource(GROUP, "customresourcedefinitions"))

    def begin_delete(self, ctx: Context, definition: CustomResourceDefinition) -> bool:
        """Mark the definition on the first DELETE and keep it, as its objects must be deleted first."""
        metadata = definition.metadata
        if metadata.deletion_timestamp is not None:
            return False
        metadata.deletion_timestamp = now()
        if CLEANUP_FINALIZER not in metadata.finalizers:
            metadata.finalizers = [*metadata.finalizers, CLEANUP_FINALIZER]
        set_condition(definition, "Terminating", "True", "InstanceDeletionPending", _MARKED)
        return True


class CustomResourceDefinitionStatusStrategy(StatusStrategy[CustomResourceDefinition]):
    """The strategy of `/status`, with which labels and other metadata may change, too."""

    allow_unconditional_update = False
    metadata_on_update = "twice"

    def validate_update(
        self, ctx: Context, new: CustomResourceDefinition, old: CustomResourceDefinition
    ) -> Iterator[FieldError]:
        from steersman.registry.apiextensions.validation import validate_status_update  # as above

        return validate_status_update(new)


def _unserved_versions() -> tuple[OtherVersion, ...]:
    from steersman.registry.apiextensions.v1beta1 import unserved_versions  # not needed without definitions

    return unserved_versions()


CUSTOM_RESOURCE_DEFINITIONS = Resource(
    kind=built_in(CustomResourceDefinition, default=set_defaults),
    plural="customresourcedefinitions",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    strategy=CustomResourceDefinitionStrategy(),
    name_validator=name_is_dns_subdomain,
    name_validator_of=definition_name,
    any_finalizers=True,
    columns=(CREATED_AT,),
    subresources=(Subresource(name="status", strategy=CustomResourceDefinitionStatusStrategy()),),
    storage_prefix="apiextensions.k8s.io/customresourcedefinitions",
    stored_as="apiextensions.k8s.io/v1beta1",
    always_json=True,
    unserved_versions=_unserved_versions,
    storage_version_hash="jfWCUB31mvA=",
    takes_long=True,
)
