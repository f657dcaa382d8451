"""The compiled schema of one version of a custom resource, with its operations on objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path
from steersman.machinery.managed_fields import Schema
from steersman.work.freeing import free_in_thread

from .compiling import compile_node
from .correlation import Correlated
from .default_pruning import pruned_defaults, with_defaults
from .defaulting import default
from .embedded import Coercion, embedded_errors
from .fast_validation import is_valid
from .list_types import list_errors
from .nodes import DEFAULTS_BELOW, EMBEDDED_BELOW, LISTS_BELOW, RULES_BELOW, Node, Plain
from .ownership import ownership_of
from .pruning import Pruning, drop_nulls
from .validation_errors import validation_errors
from .width import width_of

_WIDE: Final = 300
"""The value of `width_of` from which validating one value takes some 0.5 ms."""
_ROOT: Final = Path()
_STATUS: Final = Path("status")
_BLOCKING: Final = frozenset({field.NOT_SUPPORTED, field.REQUIRED, field.TOO_LONG, field.TOO_MANY, field.TYPE_INVALID})
_BLOCKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation"
)


class Structural:
    """A compiled schema. Objects are whole plain JSON objects, with apiVersion, kind and metadata."""

    def __init__(self, root: Node) -> None:
        self.root: Final = root
        self.has_defaults: Final = bool(root.traits & DEFAULTS_BELOW)
        self.has_rules: Final = bool(root.traits & RULES_BELOW)
        """True if there are `x-kubernetes-validations` anywhere in the schema."""
        self.is_wide: Final = width_of(root) > _WIDE
        """True if validating a single value may take long."""

    def __del__(self) -> None:
        free_in_thread(self.root)

    # Changes of objects

    def fit(self, obj: Plain, *, strict: bool = False, lenient: bool = False) -> list[str]:
        """Prune an object, drop nulls that are neither allowed nor defaulted, and coerce embedded metadata, in place.

        Returns the paths of unknown fields, in upstream's order, if `strict`; fields of the object's own metadata are
        not checked. Raises CoercionError for malformed metadata of embedded resources, unless `lenient`, which drops
        it.
        """
        pruning = Pruning(nulls=True, want_unknown=strict)
        pruning.resource(obj, self.root)
        return sorted(pruning.unknown) + self.coerce(obj, strict=strict, lenient=lenient)

    def prune(self, obj: Plain, *, strict: bool = False) -> list[str]:
        """Remove fields that the schema does not have; return their sorted paths if `strict`."""
        pruning = Pruning(want_unknown=strict)
        pruning.resource(obj, self.root)
        return sorted(pruning.unknown)

    def drop_nulls(self, obj: Plain) -> None:
        """Remove nulls that are neither allowed nor replaced by a default."""
        drop_nulls(obj, self.root)

    def coerce(self, obj: Plain, *, strict: bool = False, lenient: bool = False) -> list[str]:
        """Coerce the metadata of embedded resources; return sorted paths of unknown fields if `strict`. See `fit`."""
        if not self.root.traits & EMBEDDED_BELOW:
            return []
        coercion = Coercion(lenient=lenient, want_unknown=strict)
        coercion.value(obj, self.root, _ROOT)
        return sorted(coercion.unknown)

    def default(self, obj: Plain) -> None:
        """Set defaults."""
        default(obj, self.root)

    # Validation of objects

    def validate(self, obj: Plain, path: Path = _ROOT) -> list[FieldError]:
        """Return the validation errors of an object."""
        return [] if is_valid(self.root, obj) else list(validation_errors(self.root, obj, path))

    def validate_update(
        self, new: Plain, old: Plain, path: Path = _ROOT, *, correlated: Correlated | None = None
    ) -> list[FieldError]:
        """Return the validation errors of an updated object, without those of unchanged parts."""
        if is_valid(self.root, new):
            return []
        return list(validation_errors(self.root, new, path, correlated or self.correlate(new, old)))

    def validate_status(self, new: Plain, old: Plain, *, correlated: Correlated | None = None) -> list[FieldError]:
        """Return the validation errors of an object's status after a write of the status."""
        node = self.root.properties.get("status")
        if node is None or "status" not in new or is_valid(node, new["status"]):
            return []
        before = (correlated or self.correlate(new, old)).key("status")
        if before is None:
            before = Correlated(new["status"], old.get("status"), node)
        return list(validation_errors(node, new["status"], _STATUS, before))

    def validate_embedded(self, obj: Plain) -> list[FieldError]:
        """Return the errors of kind, apiVersion and metadata of embedded resources."""
        if not self.root.traits & EMBEDDED_BELOW:
            return []
        return list(embedded_errors(obj, self.root, _ROOT))

    def validate_lists(self, new: Plain, old: Plain | None = None) -> list[FieldError]:
        """Return the errors of duplicates in sets and lists with keys; [] if the old object already had duplicates."""
        if not self.root.traits & LISTS_BELOW:
            return []
        errors = list(list_errors(new, self.root, _ROOT))
        if errors and old is not None and next(list_errors(old, self.root, _ROOT), None) is not None:
            return []
        return errors

    def correlate(self, new: Plain, old: Plain) -> Correlated:
        """Return the correlation of the new object with the old one."""
        return Correlated(new, old, self.root)

    @cached_property
    def ownership(self) -> Schema:
        """Return the schema for field ownership."""
        return ownership_of(self.root)


def compile_schema(plain: Mapping[str, Any] | None) -> Structural:
    """Compile an `openAPIV3Schema`; a missing schema (None) knows no fields.

    Raises UnsupportedSchemaError.
    """
    root = compile_node(plain or {})
    if plain and root.traits & DEFAULTS_BELOW:
        changes = pruned_defaults(root)
        if changes:
            root = compile_node(with_defaults(plain, changes))
    return Structural(root)


def blocks_rules(errors: Iterable[FieldError]) -> FieldError | None:
    """Return the error that replaces the evaluation of rules if `errors` make it impossible, otherwise None."""
    if any(error.type in _BLOCKING for error in errors):
        return field.invalid(_ROOT, None, _BLOCKED)
    return None
