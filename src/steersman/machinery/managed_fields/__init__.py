"""Field ownership (`metadata.managedFields`), updated on every write.

The package is pure: no I/O, no clock. Field sets are the dicts of which FieldsV1 is the JSON. Schemas tell which parts
are leaves, sets or keyed lists.
"""

from steersman.machinery.managed_fields.applier import Applied, Applier
from steersman.machinery.managed_fields.builtin import custom_schema, schema_of_kind
from steersman.machinery.managed_fields.comparison import same
from steersman.machinery.managed_fields.field_set import FieldSet, fields_at
from steersman.machinery.managed_fields.internal_views import VIEWS
from steersman.machinery.managed_fields.managers import RESET_MANAGERS, ManagedFieldsError, decode_managers
from steersman.machinery.managed_fields.openapi_schemas import SchemaError
from steersman.machinery.managed_fields.plain import (
    differing_dicts,
    differing_metadata,
    differing_structs,
    plain_metadata,
    plain_object,
)
from steersman.machinery.managed_fields.requests import differ_in_times_only, manager_name
from steersman.machinery.managed_fields.scale import ReplicasPaths, to_parent, to_scale
from steersman.machinery.managed_fields.schema import DEDUCED, Schema
from steersman.machinery.managed_fields.tracker import Convert, FieldManager, OwnedKind, one_version_only
from steersman.machinery.managed_fields.typed_error import TypedError
from steersman.machinery.managed_fields.typed_value import fits
from steersman.machinery.managed_fields.versions import Version, VersionConverter

__all__ = [
    "DEDUCED",
    "RESET_MANAGERS",
    "VIEWS",
    "Applied",
    "Applier",
    "Convert",
    "FieldManager",
    "FieldSet",
    "ManagedFieldsError",
    "OwnedKind",
    "ReplicasPaths",
    "Schema",
    "SchemaError",
    "TypedError",
    "Version",
    "VersionConverter",
    "custom_schema",
    "decode_managers",
    "differ_in_times_only",
    "differing_dicts",
    "differing_metadata",
    "differing_structs",
    "fields_at",
    "fits",
    "manager_name",
    "one_version_only",
    "plain_metadata",
    "plain_object",
    "same",
    "schema_of_kind",
    "to_parent",
    "to_scale",
]
