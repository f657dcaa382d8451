"""Go types derived from Structs that are not generated from Go, so that they are decoded as built-in types are.

Members of generated types (`steersman.api`) keep their generated types. Numbers are 64 bits wide unless bounded
(`Int32`).
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import NODEFAULT, inspect, to_builtins
from msgspec.structs import replace

from steersman.api import scalars
from steersman.machinery.codec.go_types import GoMember, GoType, members_of, struct_of

_GENERATED: Final = "steersman.api."
_SCALARS: Final[dict[Any, GoType]] = {
    scalars.Quantity: GoType("own", "resource.Quantity", name="api.resource.Quantity"),
    scalars.Time: GoType("own", "v1.Time", name="meta.v1.Time"),
    scalars.MicroTime: GoType("own", "v1.MicroTime", name="meta.v1.MicroTime"),
    scalars.Duration: GoType("own", "v1.Duration", name="meta.v1.Duration"),
    scalars.Float64: GoType("float64", "float64"),
}
_RAW: Final = GoType("own", "runtime.RawExtension", name="pkg.runtime.RawExtension")
_INT32: Final = 2**31 - 1
GO_TYPE: Final = "go"
"""The key in `msgspec.Meta.extra` of a member for Go's name of the member's type."""


SCALAR_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"format": "int32", "type": "integer"},
    "int64": {"format": "int64", "type": "integer"},
    "uint8": {"format": "byte", "type": "integer"},
    "float64": {"format": "double", "type": "number"},
    "bytes": {"format": "byte", "type": "string"},
    "any": {"type": "object"},
}
"""OpenAPI schemas of scalar types, by the kind of Go type."""

_PACKAGES: Final = {
    "meta.v1": "io.k8s.apimachinery.pkg.apis.meta.v1",
    "apiextensions.v1": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    "apiregistration.v1": "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
    "api.resource": "io.k8s.apimachinery.pkg.api.resource",
    "pkg.runtime": "io.k8s.apimachinery.pkg.runtime",
    "util.intstr": "io.k8s.apimachinery.pkg.util.intstr",
}
"""OpenAPI names of packages whose types are not below k8s.io/api."""


def schema_name(type_name: str) -> str:
    """Return the OpenAPI name of a Go type whose package is shortened to two elements, e.g. "core.v1.Pod"."""
    package, _, name = type_name.rpartition(".")
    return f"{_PACKAGES.get(package) or f'io.k8s.api.{package}'}.{name}"


def reference_to(type_name: str) -> dict[str, Any]:
    """Return a reference to the schema of a Go type in an OpenAPI v3 document."""
    return {"$ref": f"#/components/schemas/{schema_name(type_name)}"}


def type_of(cls: type[Any]) -> GoType:
    """Return the Go type of a Struct, generated or not. Raises TypeError for a member that has no JSON form."""
    if cls.__module__.startswith(_GENERATED):
        return struct_of(cls)
    return _derived(cls)


def definition_of(type_: GoType) -> dict[str, Any]:
    """Return an OpenAPI definition of a derived type, from which field ownership is computed.

    Lists are atomic.
    """
    return _definition(type_, ())


def _definition(type_: GoType, above: tuple[str, ...]) -> dict[str, Any]:
    match type_.kind:
        case "struct":
            if type_.name in above:
                return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            inside = (*above, type_.name)
            members = {name: _definition(each.type, inside) for name, each in members_of(type_).items()}
            return {"type": "object", "properties": members}
        case "list":
            return {"type": "array", "items": {}}
        case "map":
            assert type_.element is not None
            return {"type": "object", "additionalProperties": _definition(type_.element, above)}
        case "bool":
            return {"type": "boolean"}
        case "string" | "bytes":
            return {"type": "string"}
        case "int32" | "int64" | "uint8" | "float64":
            return {"type": "number"}
        case "any":
            return {"x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True} if type_ is _RAW else {}


def schema_of(type_: GoType) -> dict[str, Any]:
    """Return the OpenAPI v3 schema of a derived type.

    Types of `steersman.api` among its members are references. A type within itself is an arbitrary object.
    """
    return _schema(type_, ())


def _schema(type_: GoType, above: tuple[str, ...]) -> dict[str, Any]:
    match type_.kind:
        case "struct" if not type_.derived:
            return reference_to(type_.name)
        case "struct":
            if type_.name in above:
                return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            inside = (*above, type_.name)
            members = {name: _member_schema(each, inside) for name, each in type_.members.items()}
            schema: dict[str, Any] = {"type": "object", "properties": members}
            if required := [name for name, each in type_.members.items() if each.is_required]:
                schema["required"] = sorted(required)
            return schema
        case "list" | "map":
            assert type_.element is not None
            element = _schema(type_.element, above)
            if type_.kind == "list":
                return {"type": "array", "items": element}
            return {"type": "object", "additionalProperties": element}
        case "any":
            return {"x-kubernetes-preserve-unknown-fields": True}
        case "own":
            return {"type": "string"} if type_.name == "meta.v1.Duration" else reference_to(type_.name)
    return dict(SCALAR_SCHEMAS[type_.kind])


def _member_schema(member: GoMember, above: tuple[str, ...]) -> dict[str, Any]:
    schema = _schema(member.type, above)
    if member.default and "$ref" not in schema:  # an empty default is the same as no default
        schema["default"] = member.default
    return schema


_KNOWN: Final[WeakKeyDictionary[type[Any], GoType]] = WeakKeyDictionary()


def _derived(cls: type[Any]) -> GoType:
    known = _KNOWN.get(cls)
    if known is not None:
        return known
    information = inspect.type_info(cls)
    if not isinstance(information, inspect.StructType) or not information.fields:
        raise TypeError(f"{cls.__qualname__} is no Struct with members")
    made = GoType("struct", cls.__name__, name=f"{cls.__module__}.{cls.__qualname__}", derived=True)
    _KNOWN[cls] = made  # registered before its members are read, as they may be of this class
    try:
        for each in information.fields:
            default = None if each.default is NODEFAULT else to_builtins(each.default)
            made.members[each.encode_name] = GoMember(
                _member(each.type, f"{cls.__qualname__}.{each.name}"), (), is_required=each.required, default=default
            )
    except TypeError:
        _KNOWN.clear()  # other types may have this one among their members
        raise
    return made


def _member(type_: inspect.Type, where: str) -> GoType:
    match type_:
        case inspect.Metadata():
            member = _member(type_.type, where)
            named = (type_.extra or {}).get(GO_TYPE)
            return member if named is None else replace(member, shown=named)
        case inspect.StrType():
            return GoType("string", "string")
        case inspect.BoolType():
            return GoType("bool", "bool")
        case inspect.IntType():
            size = "int32" if type_.le == _INT32 else "int64"
            return GoType(size, size)
        case inspect.FloatType():
            return GoType("float64", "float64")
        case inspect.BytesType():
            return GoType("bytes", "[]uint8")
        case inspect.AnyType():
            return GoType("any", "interface {}")
        case inspect.RawType():
            return _RAW
        case inspect.ListType():
            element = _member(type_.item_type, where)
            return GoType("list", f"[]{element.shown}", element=element)
        case inspect.DictType() if isinstance(type_.key_type, inspect.StrType):
            element = _member(type_.value_type, where)
            return GoType("map", f"map[string]{element.shown}", element=element)
        case inspect.StructType():
            return type_of(type_.cls)
        case inspect.CustomType() if type_.cls in _SCALARS:
            return _SCALARS[type_.cls]
        case inspect.UnionType():
            return _union(type_, where)
    raise TypeError(f"{where}: {type(type_).__name__.removesuffix('Type')} is nothing that an API's JSON can hold")


def _union(type_: inspect.UnionType, where: str) -> GoType:
    """Return the type of an optional member, or IntOrString."""
    others = [each for each in type_.types if not isinstance(each, inspect.NoneType)]
    if {type(each) for each in others} == {inspect.IntType, inspect.StrType}:
        return GoType("own", "intstr.IntOrString", name="util.intstr.IntOrString")
    if len(others) != 1:
        raise TypeError(f"{where}: JSON of an API has members of one type each")
    member = _member(others[0], where)
    return GoType(member.kind, f"*{member.shown}", member.name, member.element, pointer=True, members=member.members)
