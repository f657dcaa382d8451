"""Structural schemas of custom resources: compiled once for each version, they judge, prune and default values.

A schema comes as the plain JSON of an `openAPIV3Schema` (apiextensions.k8s.io/v1 JSONSchemaProps as dicts, under wire
names, nulls as if they were not there). Values are plain JSON too. Nothing here knows HTTP, storage or the type
CustomResourceDefinition. What is said of values and schemas is said in upstream's words, below upstream's paths:
k8s.io/apiextensions-apiserver `pkg/apiserver/schema`, `pkg/apiserver/validation`, `pkg/apis/apiextensions/validation`
and k8s.io/kube-openapi `pkg/validation`.

For the validation of definitions (`path` is that of the schema: `spec.versions[0].schema.openAPIV3Schema`, or
`spec.validation.openAPIV3Schema` where all versions have the same):

- `schema_errors(plain, path, checks, status_enabled=..., rules=None) -> list[FieldError]`: all that is wrong with the
  schema of a version, in upstream's order (validateCustomResourceDefinitionValidation).
- `SchemaChecks` says what is asked of a schema: `SchemaChecks()` all of it; `SchemaChecks.of_update(old_schemas)`
  leaves out what some schema of the stored definition (of all its versions) breaks already. Upstream turns
  `structural` on again where `spec.preserveUnknownFields` is not true: `replace(checks, structural=True)`.
- `structural_errors(plain, path) -> list[FieldError]`: only whether it is structural (NewStructural and
  ValidateStructural), sorted by text: for the condition NonStructuralSchema.
- `has_defaults(plain)`, `has_extensions(plain)`: what a definition's spec is asked for as a whole.
- `valid_field_path(text, plain, array_notation=...)`: where a simple JSON path leads to (selectableFields, rules).
- `RuleJudge`: the hook for `x-kubernetes-validations`, called where a schema is sound otherwise.

A `FieldError` of them has the path, type and text of a cause; where upstream goes through a map in any order, the order
here is that of the schema or the object.

For kinds (one `Structural` for each version, to be kept; equal parts of schemas are shared, between definitions too):

- `compile_schema(plain) -> Structural`. None is a schema that knows no fields. Raises UnsupportedSchemaError for what
  `schema_errors` would never have let in.
- `fit(obj, strict=False, lenient=False) -> list[str]` does what upstream does to every object that is read or was
  converted: `prune`, `drop_nulls`, `coerce`, in place, but for the object's own metadata. Gives the paths of unknown
  fields if `strict`. `lenient` is for what comes from storage: drops metadata of embedded resources that cannot be
  read. Raises CoercionError (an answer of 400) otherwise.
- `default(obj)` fills in defaults, in place: after `fit`, on requests, reads and after admission.
- `validate(obj)`, `validate_update(new, old)` judge values by the schema, `validate_status(new, old)` those of
  `status` alone; then `validate_embedded(obj)` and `validate_lists(new, old=None)`. They give lists of FieldError, so
  that the validators of a kind read: metadata, validate, scale, validate_embedded, validate_lists, rules (upstream's
  order). `obj` is the whole object, `apiVersion`, `kind` and `metadata` with it.
- `blocks_rules(errors) -> FieldError | None`: what stands for rules that cannot be evaluated after these errors.
  `root` is the compiled schema, in which each `Node` keeps its `rules` as they were declared; `correlate(new, old)`
  gives the `Correlated` that `validate_update` takes too, so that rules need not compare the values again.
- `ownership`: the schema by which fields are owned (`machinery.managed_fields`), made when it is first asked for.

Numbers are to be decoded as they were sent (`decode_as_sent`): upstream holds 3 and 3.0 against a schema in different
ways. What is stored is read with `fit(obj, lenient=True)`; upstream then coerces it once more, strictly, where it
converts it to the version that is asked for, and answers 500 if that fails.

A schema of 30 KB takes some 30 KiB of memory, and twice that again for `ownership`. An object of 2 KB is validated,
fitted and defaulted in 35, 20 and 10 us.

Work is linear in the size of a value (times the schemas that apply to it at once) and gives way
(`work.threads`). Recursion is as deep as documents may be nested (`machinery.large_work.nesting`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steersman.schema.compiling import UnsupportedSchemaError
from steersman.schema.correlation import Correlated
from steersman.schema.embedded import CoercionError
from steersman.schema.nodes import MISSING, Checks, Node
from steersman.schema.structural import Structural, blocks_rules, compile_schema

if TYPE_CHECKING:  # what judges definitions is imported when it is first asked for: a server of known ones does without
    from steersman.schema.declaration import SchemaChecks, schema_errors
    from steersman.schema.field_paths import FieldPathError, FoundField, valid_field_path
    from steersman.schema.rules import RuleJudge, RulePlace
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
    "RuleJudge",
    "RulePlace",
    "SchemaChecks",
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
    "rules": ("RuleJudge", "RulePlace"),
    "structure": ("structural_errors",),
    "walking": ("has_defaults", "has_extensions"),
}


def __getattr__(name: str) -> Any:
    """Imports a name that is for definitions from its module when it is first asked for (PEP 562)."""
    for module, names in _MODULES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
