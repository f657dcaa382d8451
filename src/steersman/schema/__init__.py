"""Structural schemas of custom resources: compiled once for each version, they validate, prune and default values.

A schema is the plain JSON of an `openAPIV3Schema` (apiextensions.k8s.io/v1 JSONSchemaProps as dicts, under wire names;
nulls count as missing). Values are plain JSON, too. This package is independent of HTTP, storage and the type
CustomResourceDefinition. Errors have upstream's messages and paths: k8s.io/apiextensions-apiserver
`pkg/apiserver/schema`, `pkg/apiserver/validation`, `pkg/apis/apiextensions/validation` and k8s.io/kube-openapi
`pkg/validation`.

For the validation of definitions (`path` is that of the schema: `spec.versions[0].schema.openAPIV3Schema`, or
`spec.validation.openAPIV3Schema` if all versions share it):

- `schema_errors(plain, path, checks, status_enabled=..., rules=None) -> list[FieldError]`: all errors of a version's
  schema, in upstream's order (validateCustomResourceDefinitionValidation).
- `SchemaChecks` selects the checks: `SchemaChecks()` has all of them; `SchemaChecks.of_update(old_schemas)` leaves out
  those that a schema of the stored definition (of any version) already fails. Upstream turns `structural` on again
  if `spec.preserveUnknownFields` is not true: `replace(checks, structural=True)`.
- `structural_errors(plain, path) -> list[FieldError]`: only the errors that keep a schema from being structural
  (NewStructural and ValidateStructural), sorted by text, for the condition NonStructuralSchema.
- `has_defaults(plain)`, `has_extensions(plain)`: facts that the validation of a definition's spec needs.
- `valid_field_path(text, plain, array_notation=...)`: the field of a simple JSON path (selectableFields, rules).
- `RuleValidator`: the hook for `x-kubernetes-validations`, called if a schema has no other errors.

Each `FieldError` has the path, type and text of a cause. Where upstream walks a map in random order, the order here is
that of the schema or the object.

For kinds (one `Structural` for each version, kept by the caller; equal parts are shared, even between definitions):

- `compile_schema(plain) -> Structural`. The schema None knows no fields. Raises UnsupportedSchemaError for schemas
  that `schema_errors` would have refused.
- `fit(obj, strict=False, lenient=False) -> list[str]` does in place what upstream does to every object that is decoded
  or converted: `prune`, `drop_nulls`, `coerce`, except for the object's own metadata. Returns the paths of unknown
  fields if `strict`. `lenient` is for objects from storage: malformed metadata of embedded resources is dropped.
  Otherwise raises CoercionError (status code 400).
- `default(obj)` sets defaults, in place: after `fit`, on requests, reads and after admission.
- `validate(obj)` and `validate_update(new, old)` validate objects by the schema, `validate_status(new, old)` only
  their `status`; then `validate_embedded(obj)` and `validate_lists(new, old=None)`. All return lists of FieldError, so
  that the validators of a kind are, in upstream's order: metadata, validate, scale, validate_embedded,
  validate_lists, rules. `obj` is the whole object, including `apiVersion`, `kind` and `metadata`.
- `blocks_rules(errors) -> FieldError | None`: the error that replaces the evaluation of rules after such errors.
  `root` is the compiled schema, in which each `Node` has its `rules` as declared. `correlate(new, old)` returns the
  `Correlated` that `validate_update` also takes, so that rules need not compare the values again.
- `ownership`: the schema for field ownership (`machinery.managed_fields`), built at first use.

Numbers must be decoded as they were sent (`decode_as_sent`), because upstream validates 3 and 3.0 differently. Stored
objects are read with `fit(obj, lenient=True)`. Upstream coerces them once more, strictly, when it converts them to the
requested version, and answers 500 if that fails.

A schema of 30 KB takes some 30 KiB of memory, and twice that again for `ownership`. An object of 2 KB is validated,
fitted and defaulted in 35, 20 and 10 us.

Work is linear in the size of a value (times the number of schemas that apply to it at once) and yields the interpreter
(`work.threads`). Recursion is as deep as documents may be nested (`machinery.large_work.nesting`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steersman.schema.compiling import UnsupportedSchemaError
from steersman.schema.correlation import Correlated
from steersman.schema.embedded import CoercionError
from steersman.schema.nodes import MISSING, Checks, Node
from steersman.schema.structural import Structural, blocks_rules, compile_schema

# the validation of definitions is imported at first use: a server whose definitions are stored does without it
if TYPE_CHECKING:
    from steersman.schema.declaration import SchemaChecks, schema_errors
    from steersman.schema.field_paths import FieldPathError, FoundField, valid_field_path
    from steersman.schema.rules import RuleValidator, SchemaPosition
    from steersman.schema.structure import structural_errors
    from steersman.schema.walking import has_defaults, has_extensions

__all__ = [
    "MISSING",
    "Checks",
    "CoercionError",
    "Correlated",
    "FieldPathError",
    "FoundField",
    "Node",
    "RuleValidator",
    "SchemaChecks",
    "SchemaPosition",
    "Structural",
    "UnsupportedSchemaError",
    "blocks_rules",
    "compile_schema",
    "has_defaults",
    "has_extensions",
    "schema_errors",
    "structural_errors",
    "valid_field_path",
]

_MODULES = {
    "declaration": ("SchemaChecks", "schema_errors"),
    "field_paths": ("FieldPathError", "FoundField", "valid_field_path"),
    "rules": ("RuleValidator", "SchemaPosition"),
    "structure": ("structural_errors",),
    "walking": ("has_defaults", "has_extensions"),
}


def __getattr__(name: str) -> Any:
    """Import a name for the validation of definitions from its module at first use (PEP 562)."""
    for module, names in _MODULES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
