"""The structural schema (`openAPIV3Schema`) of a class: types, constraints, defaults, rules, descriptions."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from steersman.library.definition_error import DefinitionError
from steersman.library.models import NO_DEFAULT, Field, Plain, description_of, fields_of, is_model

_META: Final = ("metadata", "kind", "apiVersion", "api_version")
"""Members of every object, which the class may have and the schema omits."""
_STATUS: Final = "status"
_SCALARS: Final[dict[object, Plain]] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL validation rule for the type that it annotates: `Annotated[int, Rule("self >= oldSelf")]`.

    For the meaning of the fields see ValidationRule of apiextensions.k8s.io/v1.
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None

    def plain(self) -> Plain:
        """Return the rule as in a definition."""
        given = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self,
        }
        return {name: value for name, value in given.items() if value not in ("", None)}


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: annotations are hashed, and a dict has no hash
class OpenAPI:
    """Additional members for the schema of the type that it annotates, which have no other notation here.

    `Annotated[list[Port], OpenAPI({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})]`
    """

    members: Mapping[str, Any]


def schema_of(model: type[Any], rules: Iterable[Rule] = ()) -> Plain:
    """Return the schema of a class's objects; `rules` apply to the whole object.

    Raises DefinitionError, with the position, for an annotation that a structural schema cannot express.
    """
    schema = _model_schema(model, model.__name__, (), skip=_META)
    _add_rules(schema, rules)
    return schema


def _model_schema(model: type[Any], where: str, outer: tuple[type, ...], skip: Sequence[str] = ()) -> Plain:
    if model in outer:
        raise DefinitionError(f"{where}: {model.__name__} contains itself, which a structural schema cannot represent")
    schema: Plain = {"type": "object"}
    text = description_of(model)
    if text:
        schema["description"] = text
    properties: Plain = {}
    required = []
    for each in _fields(model, where):
        if each.name in skip:
            _check_meta(each, where)
            continue
        if skip and each.name == _STATUS and each.is_required:
            raise DefinitionError(f"{where}.status needs a default, e.g. None: objects are created without one")
        properties[each.name] = _field_schema(each, f"{where}.{each.name}", (*outer, model), is_root=bool(skip))
        if each.is_required:
            required.append(each.name)
    if properties:
        schema["properties"] = properties
    if required:
        schema["required"] = required
    return schema


def _fields(model: type[Any], where: str) -> list[Field]:
    try:
        return list(fields_of(model))
    except NameError as error:
        raise DefinitionError(
            f"{where}: an annotation of {model.__name__} names what is not there: {error}; classes are at the top of "
            f"their module, and above those that name them"
        ) from None


def _check_meta(field: Field, where: str) -> None:
    """Raise DefinitionError for a root field that has the name of a member of every object, but not its type."""
    if field.name != "metadata":
        raise DefinitionError(f"{where}.{field.name}: every object has this field, a class must not declare it")
    kinds = [get_origin(each) or each for each in (field.type, *get_args(field.type))]
    if not any(each is Any or is_model(each) or each in (dict, Mapping) for each in kinds):
        raise DefinitionError(f"{where}.metadata is of the type ObjectMeta, not {_type_name(field.type)}")


def _field_schema(field: Field, where: str, outer: tuple[type, ...], *, is_root: bool) -> Plain:
    schema = _type_schema(field.type, where, outer)
    for marker in field.markers:
        _mark(schema, marker, where)
    if field.description:
        schema["description"] = field.description
    if field.default is not NO_DEFAULT and not (is_root and field.name == _STATUS):
        schema["default"] = field.default
    return schema


def _type_schema(hint: Any, where: str, outer: tuple[type, ...]) -> Plain:
    hint = getattr(hint, "__value__", hint)  # a type alias: `type X = ...`
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        schema = _type_schema(args[0], where, outer)
        for marker in args[1:]:
            _mark(schema, marker, where)
        return schema
    if origin is Union or origin is types.UnionType:
        return _union_schema(args, where, outer)
    if origin is Literal:
        return _enum_schema(args, where)
    if hint is Any or hint is object or isinstance(hint, TypeVar) or hint is msgspec.Raw:
        return {"x-kubernetes-preserve-unknown-fields": True}
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _enum_schema([each.value for each in hint], where)
    if is_model(hint):
        return _model_schema(hint, where, outer)
    return _collection_schema(origin or hint, args, where, outer)


def _collection_schema(kind: Any, args: tuple[Any, ...], where: str, outer: tuple[type, ...]) -> Plain:
    if isinstance(kind, type) and issubclass(kind, Mapping):
        if not args:
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        if args[0] is not str:
            raise DefinitionError(f"{where}: the keys of a map are str, not {_type_name(args[0])}")
        return {"type": "object", "additionalProperties": _type_schema(args[1], f"{where}[]", outer)}
    if isinstance(kind, type) and issubclass(kind, Sequence | AbstractSet):
        if len(args) > 1 and not (len(args) == 2 and args[1] is Ellipsis):
            raise DefinitionError(f"{where}: the items of a list are of one type")
        items = _type_schema(args[0] if args else Any, f"{where}[]", outer)
        schema: Plain = {"type": "array", "items": items}
        if issubclass(kind, AbstractSet):
            schema["x-kubernetes-list-type"] = "set"
        return schema
    raise DefinitionError(f"{where}: there is no schema of {_type_name(kind)}")


def _union_schema(args: Sequence[Any], where: str, outer: tuple[type, ...]) -> Plain:
    members = [each for each in args if each not in (types.NoneType, msgspec.UnsetType)]
    if len(members) == 1:
        return _type_schema(members[0], where, outer)
    if set(members) == {int, str}:
        return {"x-kubernetes-int-or-string": True}
    shown = " | ".join(map(_type_name, members))
    raise DefinitionError(
        f"{where}: a structural schema cannot represent {shown}; the supported unions are X | None and int | str"
    )


def _enum_schema(values: Sequence[Any], where: str) -> Plain:
    kinds = {type(each) for each in values if each is not None}
    if len(kinds) != 1 or not kinds <= {str, int}:
        raise DefinitionError(f"{where}: the values of an enumeration are all str or all int")
    return {**_SCALARS[kinds.pop()], "enum": [each for each in values if each is not None]}


def _type_name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


# Constraints: msgspec.Meta, annotated_types and pydantic's Field name them alike


def _mark(schema: Plain, marker: object, where: str) -> None:
    if isinstance(marker, Rule):
        _add_rules(schema, (marker,))
        return
    if isinstance(marker, OpenAPI):
        _check_members(marker.members, where)
        schema.update(marker.members)
        return
    _bound(schema, marker)
    _measure(schema, marker)
    for name, member in (("pattern", "pattern"), ("multiple_of", "multipleOf"), ("description", "description")):
        value = getattr(marker, name, None)
        if value is not None:
            schema[member] = value
    more = getattr(marker, "extra_json_schema", None)
    if more:
        schema.update(more)
    for each in getattr(marker, "metadata", ()):  # pydantic's Field within a type
        _mark(schema, each, where)


def _check_members(members: object, where: str) -> None:
    """Raise DefinitionError for a member that schemas do not have, as it would be dropped silently."""
    from steersman.api.apiextensions.v1 import JSONSchemaProps

    if not isinstance(members, Mapping):
        raise DefinitionError(f"{where}: OpenAPI needs a dict of members of a schema, not {members!r}")
    known = {each.encode_name for each in msgspec.structs.fields(JSONSchemaProps)}
    for name in members:
        if name not in known:
            raise DefinitionError(f"{where}: a schema has no member {name!r}")


def _bound(schema: Plain, marker: object) -> None:
    for name, member, exclusive in (
        ("ge", "minimum", False),
        ("gt", "minimum", True),
        ("le", "maximum", False),
        ("lt", "maximum", True),
    ):
        value = getattr(marker, name, None)
        if value is not None:
            schema[member] = value
            if exclusive:
                schema[f"exclusive{member.capitalize()}"] = True


def _measure(schema: Plain, marker: object) -> None:
    """Add minimal and maximal lengths of strings, lists and maps."""
    what = {"string": "Length", "array": "Items", "object": "Properties"}.get(schema.get("type", ""), "Length")
    for name, member in (("min_length", "min"), ("max_length", "max")):
        value = getattr(marker, name, None)
        if value is not None:
            schema[member + what] = value


def _add_rules(schema: Plain, rules: Iterable[Rule]) -> None:
    found = [each.plain() for each in rules]
    if found:
        schema["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", ()), *found]
