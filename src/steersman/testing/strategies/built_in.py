"""Built-in kinds: their OpenAPI schemas with facts, as structural schemas, and the judge of their objects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from steersman.controlplane.resources import KUBE_API
from steersman.kinds.kind import Kind
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.field import FieldError, Path, first_errors, invalid, required
from steersman.machinery.suggestions import did_you_mean
from steersman.machinery.validation.object_meta import validate_new_metadata
from steersman.openapi.kind_schemas import KindSchema, built_in_schema
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.schema import compile_schema

from .built_in_facts import FACTS, QUANTITY, Facts, Schema
from .errors import UnknownKind
from .sources import CustomSource

_DEEPEST: Final = 24
"""Levels of types, so that types that contain themselves end."""
_PREFIXES: Final = ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis.")
_PLAIN: Final[Mapping[str, Schema]] = {
    "api.resource.Quantity": {"type": "string", "pattern": QUANTITY},
    "util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
    "meta.v1.Time": {"type": "string", "format": "date-time"},
    "meta.v1.MicroTime": {"type": "string", "pattern": r"^20[0-2]\d-0[1-9]-0[1-9]T0\d:00:00\.000000Z$"},
    "meta.v1.Duration": {"type": "string", "pattern": "^[1-9]s$"},
    "runtime.RawExtension": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
"""Schemas of types with JSON of their own, by the end of their names."""
_KEPT: Final = (
    "type",
    "enum",
    "format",
    "nullable",
    "uniqueItems",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-int-or-string",
)


def built_in_source(kind: str, api_version: str = "") -> tuple[CustomSource, BuiltInJudge]:
    """Return a built-in kind with its judge. Raises UnknownKind."""
    resource, served = _resource(kind, api_version)
    gvk = served.gvk
    found = built_in_schema(gvk)
    if found is None:
        raise UnknownKind(f"{kind} has no schema")
    plain = _Resolver(found).schema(found.schema, found.reference, 0)
    source = CustomSource(str(gvk.group_version), gvk.kind, resource.plural, resource.namespaced, compile_schema(plain))
    return source, BuiltInJudge(resource, served)


@cache
def _kinds() -> Mapping[tuple[str, str], tuple[Resource[Any, Any], Kind[Any]]]:
    """Return the stored kinds by kind and apiVersion; of equal kinds the preferred one is first."""
    found: dict[tuple[str, str], tuple[Resource[Any, Any], Kind[Any]]] = {}
    for resource in KUBE_API:
        found.setdefault((resource.kind.name, str(resource.kind.gvk.group_version)), (resource, resource.kind))
    return found


def _resource(kind: str, api_version: str) -> tuple[Resource[Any, Any], Kind[Any]]:
    known = _kinds()
    for (name, version), found in known.items():
        if name == kind and api_version in ("", version):
            return found
    names = sorted({name for name, _ in known})
    where = f" in {api_version}" if api_version else ""
    raise UnknownKind(f"there is no built-in kind {kind}{where}{did_you_mean(kind, names)}")


class _Resolver:
    """Makes one schema of a schema with references, and adds facts."""

    def __init__(self, kind: KindSchema) -> None:
        self._schema_of = kind.schema_of

    def schema(self, schema: Mapping[str, Any], reference: str, depth: int, more: Schema | None = None) -> Schema:
        """Return a schema without references. `more` are facts about the position."""
        target = schema.get("$ref") or next((each["$ref"] for each in schema.get("allOf", ()) if "$ref" in each), "")
        if target:
            return self.schema(self._schema_of(str(target)), str(target), depth, more)
        name = reference.rpartition("/")[2]
        plain = next((each for end, each in _PLAIN.items() if name.endswith(end)), None)
        if plain is not None:
            return {**plain, **(more or {})}
        found = {key: schema[key] for key in _KEPT if key in schema}
        if "properties" in schema:
            found |= self._object(schema, _facts_of(name), depth)
        more = dict(more or {})
        keys = more.pop("x-keys", None)
        items, values = more.pop("items", None), more.pop("additionalProperties", None)
        if isinstance(schema.get("items"), Mapping):
            found["items"] = self.schema(schema["items"], "", depth + 1, items)
        if isinstance(schema.get("additionalProperties"), Mapping):
            value = self.schema(schema["additionalProperties"], "", depth + 1, values)
            if keys:
                found["properties"] = dict.fromkeys(keys, value)
            else:
                found["additionalProperties"] = value
        if "enum" in more:
            found.pop("enum", None)
        return found | more

    def _object(self, schema: Mapping[str, Any], facts: Facts, depth: int) -> Schema:
        names = [each for each in schema["properties"] if each not in facts.omitted]
        if facts.one_of:
            choices = set(facts.one_of)
            alternatives = {each for each in names if _is_alternative(each, names, facts, schema)}
            names = [each for each in names if each in choices or each not in alternatives]
        properties = {
            each: self.schema(schema["properties"][each], "", depth + 1, facts.fields.get(each))
            for each in names
            if depth < _DEEPEST
        }
        wanted = [each for each in (*schema.get("required", ()), *facts.required) if each in properties]
        found: Schema = {"properties": properties, "required": list(dict.fromkeys(wanted))}
        if facts.one_of:
            found["oneOf"] = [{"required": [each]} for each in facts.one_of]
        return found


def _is_alternative(name: str, names: list[str], facts: Facts, schema: Mapping[str, Any]) -> bool:
    """Return True for a field that excludes those of `one_of`: of a type of its own, and without facts."""
    target = schema["properties"][name]
    is_typed = bool(target.get("$ref") or target.get("allOf"))
    return is_typed and name not in facts.fields and name not in facts.required and name not in facts.one_of


def _facts_of(name: str) -> Facts:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return FACTS.get(name.removeprefix(prefix), Facts())
    return Facts()


class BuiltInJudge:
    """The validation of new objects of a built-in kind."""

    def __init__(self, resource: Resource[Any, Any], kind: Kind[Any]) -> None:
        self._resource = resource
        self._kind = kind

    def errors(self, obj: dict[str, Any]) -> list[FieldError]:
        """Return the errors of a new object."""
        try:
            decoded = self._kind.from_plain(obj).obj
        except DecodeError as error:
            return [invalid(Path(), None, str(error))]
        if problem := self._kind.internal_error(decoded):
            return [invalid(Path(), None, problem)]
        self._kind.default(decoded)
        resource, meta = self._resource, decoded.metadata
        meta.uid = meta.uid or "00000000-0000-4000-8000-000000000000"
        strategy = resource.strategy
        context = Context()
        strategy.prepare_for_create(context, decoded)
        judge = resource.name_validator_of
        found = list(
            validate_new_metadata(
                meta,
                namespaced=resource.namespaced,
                name_validator=resource.name_validator if judge is None else judge(decoded),
                any_finalizers=resource.any_finalizers,
            )
        )
        found += first_errors(strategy.validate(context, decoded))
        return found or _unnamed(meta)


def _unnamed(meta: Any) -> list[FieldError]:
    return [] if meta.name else [required(Path("metadata", "name"), "")]
