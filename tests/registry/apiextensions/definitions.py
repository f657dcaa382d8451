"""Builders of definitions for tests, and the results of their strategies."""

from __future__ import annotations

import copy
import json
from typing import Any

from steersman.api.apiextensions.v1 import CustomResourceDefinition
from steersman.machinery.codec.serializer import decode_json
from steersman.machinery.errors.field import FieldError
from steersman.machinery.validation.object_meta import validate_new_metadata
from steersman.registry.apiextensions.customresourcedefinitions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    CustomResourceDefinitionStrategy,
)
from steersman.rest.context import Context

Body = dict[str, Any]
STRATEGY = CustomResourceDefinitionStrategy()


def schema(**properties: Any) -> Body:
    """Return the schema of an object whose spec has these members."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def version(name: str = "v1", of: Any = None, **members: Any) -> Body:
    """Return a version with a schema; with `of` None it has no schema."""
    own = {"openAPIV3Schema": {"type": "object"} if of is None else of}
    return {"name": name, "served": True, "storage": name == "v1", "schema": own, **members}


def definition(metadata: Body | None = None, **spec: Any) -> Body:
    """Return a valid definition, changed by the given members of the spec; ... removes a member."""
    body: Body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.q.example.com"} | (metadata or {}),
        "spec": {
            "group": "q.example.com",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [version()],
        }
        | spec,
    }
    body["spec"] = {name: value for name, value in body["spec"].items() if value is not ...}
    return copy.deepcopy(body)


def read(body: Body) -> CustomResourceDefinition:
    """Decode the object as a client would send it."""
    found = decode_json(CustomResourceDefinition, json.dumps(body).encode())
    CUSTOM_RESOURCE_DEFINITIONS.kind.default(found)
    return found


def created(body: Body) -> tuple[CustomResourceDefinition, list[FieldError], list[str]]:
    """Return the stored form of a new definition, its errors and its warnings."""
    ctx = Context()
    obj = read(body)
    STRATEGY.prepare_for_create(ctx, obj)
    judge = CUSTOM_RESOURCE_DEFINITIONS.name_validator_of
    assert judge is not None
    metadata = validate_new_metadata(obj.metadata, namespaced=False, name_validator=judge(obj), any_finalizers=True)
    errors = [*metadata, *STRATEGY.validate(ctx, obj)]
    return obj, errors, list(STRATEGY.warnings_on_create(ctx, obj))


def updated(body: Body, old: CustomResourceDefinition) -> tuple[CustomResourceDefinition, list[FieldError], list[str]]:
    """Return the stored form of an updated definition, its errors without those of the metadata, and its warnings."""
    ctx = Context()
    obj = read(body)
    obj.metadata.generation = old.metadata.generation
    STRATEGY.prepare_for_update(ctx, obj, old)
    errors = list(STRATEGY.validate_update(ctx, obj, old))
    return obj, errors, list(STRATEGY.warnings_on_update(ctx, obj, old))


def texts(errors: list[FieldError]) -> list[str]:
    """Return the messages of errors."""
    return [str(error) for error in errors]
