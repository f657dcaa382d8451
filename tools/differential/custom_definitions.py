"""Random definitions whose objects are to be compared: most have schemas of every shape, rules, and some versions."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from steersman.machinery.errors import field
from steersman.schema import SchemaChecks, schema_errors
from tools.compare_schemas.schemas import schema as random_schema

from .case import named
from .definitions import COLLECTION, FULL_NAME, definition

Body = dict[str, Any]

_RULES: Final = (
    "self.replicas <= 10",
    "!has(self.color) || self.color != 'black'",
    "!has(oldSelf.color) || has(self.color)",
    "self.replicas >= oldSelf.replicas",
    "has(self.color) && self.color.startsWith('r')",
)
_SETS: Final[dict[str, Body]] = {
    "tags": {
        "type": "array",
        "maxItems": 5,
        "items": {"type": "string", "maxLength": 10},
        "x-kubernetes-list-type": "set",
    },
    "ports": {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["p", "q"],
        "items": {
            "type": "object",
            "required": ["p"],
            "properties": {
                "p": {"type": "integer"},
                "q": {"type": "string", "default": "TCP"},
                "v": {"type": "string"},
            },
        },
    },
    "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "string"}}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 5},
    "percent": {"x-kubernetes-int-or-string": True, "default": "10%"},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "since": {"type": "string", "format": "date-time", "nullable": True},
    "template": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "nested": {
        "type": "object",
        "default": {"deep": {"x": 1}},
        "properties": {
            "deep": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 5}}}
        },
    },
    "free": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}},
}
"""Fields that matter most to field ownership, pruning and defaulting."""

_COLUMNS: Final[tuple[Body, ...]] = (
    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1, "description": "its color"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Tags", "type": "string", "jsonPath": ".spec.tags[*]"},
    {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
    {"name": "Nested", "type": "string", "jsonPath": ".spec.nested"},
    {"name": "Number", "type": "number", "jsonPath": ".spec.replicas", "format": "int32"},
    {"name": "Flag", "type": "boolean", "jsonPath": ".spec.open.flag"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)


@dataclass(frozen=True)
class Defined:
    """A definition that is served."""

    body: Body

    @property
    def path(self) -> str:
        """Return the path of the definition."""
        return f"{COLLECTION}/{self.body['metadata']['name']}"

    @property
    def versions(self) -> list[Body]:
        return [each for each in self.body["spec"]["versions"] if each["served"]]

    def collection(self, version: str, namespace: str) -> str:
        """The path of its objects."""
        spec = self.body["spec"]
        between = f"/namespaces/{namespace}" if spec["scope"] == "Namespaced" else ""
        return f"/apis/{spec['group']}/{version}{between}/{spec['names']['plural']}"


def served(random: Random, name: str) -> Defined:
    """A definition in a group that `name` is part of, without conversion; the first of its versions is served."""
    body = definition(random)
    spec = body["spec"]
    spec.pop("conversion", None)
    own = _version(random)
    for number, version in enumerate(spec["versions"]):
        if random.random() < 0.7:
            fresh = own if random.random() < 0.4 else _version(random)
            if fresh["schema"] != own["schema"] and random.random() < 0.5:
                fresh["schema"] = _related(random, own["schema"])
            for key in ("schema", "subresources", "additionalPrinterColumns", "selectableFields"):
                version.pop(key, None)
            version |= copy.deepcopy(fresh)
        version["served"] = number == 0 or random.random() < 0.85
    if len(spec["versions"]) > 1 and random.random() < 0.4:
        spec["versions"][0]["storage"], spec["versions"][-1]["storage"] = False, True
    return Defined(named(body, name, ""))


def _version(random: Random) -> Body:
    spec: Body = {
        "type": "object",
        "properties": {
            "replicas": {"type": "integer", **random.choice(({}, {"default": 1}, {"minimum": 0, "default": 2}))},
            "color": {"type": "string", "maxLength": 20},
        },
    }
    for name in random.sample(list(_SETS), random.choice((2, 4, 6))):
        spec["properties"][name] = copy.deepcopy(_SETS[name])
    for name in random.sample(("a", "b", "c", "d"), random.choice((0, 1, 2))):
        spec["properties"][name] = _sound(random)
    if random.random() < 0.4:
        spec["x-kubernetes-validations"] = [_rule(each) for each in random.sample(_RULES[:4], random.choice((1, 2)))]
        spec["properties"]["replicas"].setdefault("default", 1)
    if random.random() < 0.2:
        spec["x-kubernetes-preserve-unknown-fields"] = True
    condition = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string"}, "status": {"type": "string", "enum": ["True", "False"]}},
    }
    status: Body = {
        "type": "object",
        "properties": {
            "replicas": {"type": "integer"},
            "selector": {"type": "string"},
            "conditions": {
                "type": "array",
                "items": condition,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    }
    whole: Body = {"type": "object", "properties": {"spec": spec, "status": status}}
    if random.random() < 0.2:
        whole["required"] = ["spec"]
    if random.random() < 0.15:
        whole["properties"]["data"] = {"type": "object", "additionalProperties": {"type": "string"}}
    if random.random() < 0.1:
        whole["x-kubernetes-preserve-unknown-fields"] = True
    if random.random() < 0.15:
        names = {"type": "string", "maxLength": random.choice((8, 63))}
        whole["properties"]["metadata"] = {"type": "object", "properties": {"name": names}}
    if random.random() < 0.1:
        whole["x-kubernetes-validations"] = [_rule("self.metadata.name != 'forbidden' && has(self.spec)")]
    version: Body = {"schema": {"openAPIV3Schema": whole}}
    if random.random() < 0.6:
        version["subresources"] = {"status": {}}
    if random.random() < 0.4:
        version.setdefault("subresources", {})["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            **({"labelSelectorPath": ".status.selector"} if random.random() < 0.5 else {}),
        }
    if random.random() < 0.6:
        version["additionalPrinterColumns"] = random.sample(_COLUMNS, random.choice((1, 3, 5)))
    if random.random() < 0.4:
        version["selectableFields"] = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.replicas"}]
    return version


def _rule(text: str) -> Body:
    rule: Body = {"rule": text}
    if "oldSelf" not in text:
        rule["message"] = f"it must be so that {text}"
    return rule


def _sound(random: Random) -> Body:
    """A schema that is good wherever it stands."""
    while True:
        each = random_schema(random, 1)
        plain = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"p": each}}}}
        if not schema_errors(plain, field.Path("schema"), SchemaChecks(), status_enabled=False):
            return each


def _related(random: Random, schema: Body) -> Body:
    """Return a copy of a schema without some members, and with other defaults and bounds."""
    found = copy.deepcopy(schema)
    spec = found["openAPIV3Schema"]["properties"]["spec"]
    for name in list(spec["properties"]):
        if name not in ("replicas", "color") and random.random() < 0.3:
            del spec["properties"][name]
    if random.random() < 0.5:
        spec["properties"]["replicas"]["default"] = 7
    if random.random() < 0.3:
        spec["properties"]["color"]["maxLength"] = 3
    return found


__all__ = ["COLLECTION", "FULL_NAME", "Defined", "served"]
