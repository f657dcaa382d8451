"""Field ownership (`metadata.managedFields`): who owns which field, tracked on every write.

Pure: no I/O, no clock. Field sets are the dicts that FieldsV1 is; schemas tell leaves, sets and keyed lists apart.
"""

from steersman.machinery.managed_fields.builtin import schema_for, schema_of_kind
from steersman.machinery.managed_fields.filters import Filter, excluding, only
from steersman.machinery.managed_fields.managers import ManagedFieldsError, decode_managers
from steersman.machinery.managed_fields.openapi_schemas import SchemaBuilder
from steersman.machinery.managed_fields.schema import DEDUCED, Schema
from steersman.machinery.managed_fields.tracker import Convert, FieldManager
from steersman.machinery.managed_fields.typed_error import TypedError

__all__ = [
    "DEDUCED",
    "Convert",
    "FieldManager",
    "Filter",
    "ManagedFieldsError",
    "Schema",
    "SchemaBuilder",
    "TypedError",
    "decode_managers",
    "excluding",
    "only",
    "schema_for",
    "schema_of_kind",
]
