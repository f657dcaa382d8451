"""Validation of the defaults in a schema by the schema itself (k8s.io/apiextensions-apiserver `schema/defaulting`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, Path, aggregate

from .default_pruning import Steps, object_with
from .embedded import Coercion, CoercionError, embedded_errors, resource_errors
from .equality import copied, same
from .nodes import DEFAULTS_BELOW, EMBEDDED, MISSING, Node, Plain
from .pruning import Pruning
from .rules import RuleValidator
from .validation_errors import validation_errors

_TYPE_META = {"apiVersion": "validation/v1", "kind": "Validation"}
_META_FIELDS = ("metadata", "apiVersion", "kind")


class _Place(NamedTuple):
    """The position of a schema: below `root`, the schema of the resource around it, by `steps`."""

    node: Node
    path: Path
    root: Node
    steps: Steps
    in_meta: bool
    is_resource_root: bool


class DefaultChecks:
    """A validator of the defaults in a schema compiled for it (`Compiler.node_of_defaults`)."""

    def __init__(self, *, pruned: bool, rules: RuleValidator | None) -> None:
        self._pruned = pruned
        """True if a default may only have fields of its schema."""
        self._rules = rules

    def errors(self, root: Node, path: Path) -> Iterator[FieldError]:
        """Yield the errors of the defaults in the schema of a resource."""
        yield from self._errors(_Place(root, path, root, (), False, True))

    def _errors(self, place: _Place) -> Iterator[FieldError]:
        node, path = place.node, place.path
        is_resource = place.is_resource_root or bool(node.traits & EMBEDDED)
        if is_resource:
            place = place._replace(root=node, steps=(), in_meta=False)
        if node.default is not MISSING:
            yield from self._own_errors(place, is_resource=is_resource)
        if not node.traits & DEFAULTS_BELOW:
            return
        # upstream does not check defaults below additionalProperties
        if node.items is not None:
            below = place._replace(
                node=node.items, path=path / "items", steps=(*place.steps, None), is_resource_root=False
            )
            yield from self._errors(below)
        for name, child in node.properties.items():
            yield from self._errors(
                _Place(
                    child,
                    (path / "properties")[name],
                    place.root,
                    (*place.steps, name),
                    place.in_meta or (is_resource and name in _META_FIELDS),
                    False,
                )
            )

    def _own_errors(self, place: _Place, *, is_resource: bool) -> Iterator[FieldError]:
        node, path = place.node, place.path / "default"
        if place.in_meta:
            wrong = _metadata_error(object_with(copied(node.default), place.steps), place.root)
            if wrong:
                yield field.invalid(path, node.default, f"must result in valid metadata: {wrong}")
                return
            value = node.default
        else:
            if self._pruned and not same(_pruned(node, is_resource=is_resource), node.default):
                yield field.invalid(path, node.default, "must not have unknown fields")
            value = copied(node.default)
            wrongs = _coerced(value, node, path, is_resource=is_resource)
            if wrongs:
                yield from wrongs
                return
        found = list(validation_errors(node, value, path))
        yield from found
        if not found and self._rules is not None:
            yield from self._rules.default_errors(node, value, path, is_root=is_resource)


def _pruned(node: Node, *, is_resource: bool) -> object:
    value = copied(node.default)
    if is_resource and value.__class__ is dict:
        Pruning().resource(value, node)
    else:
        Pruning().value(value, node)
    return value


def _coerced(value: object, node: Node, path: Path, *, is_resource: bool) -> list[FieldError]:
    """Coerce embedded metadata in a default, in place; return the errors."""
    try:
        if is_resource and isinstance(value, dict):
            Coercion().object(value, node, path)
            return list(resource_errors(value, node, path))
        Coercion().value(value, node, path)
    except CoercionError as error:
        return [error.error]
    return list(embedded_errors(value, node, path))


def _metadata_error(obj: Plain, root: Node) -> str:
    """Return the error of an object with nothing but one default in its metadata, "" without error."""
    obj = {**_TYPE_META, **obj}
    try:
        Coercion().object(obj, root, Path())
    except CoercionError as error:
        return str(error)
    return aggregate(errors) if (errors := list(resource_errors(obj, root, Path()))) else ""
