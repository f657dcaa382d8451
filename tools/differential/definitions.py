"""CustomResourceDefinitions: random valid ones with up to two mutations, created, updated, their status written.

New definitions are sent as dry runs. One that is to be updated is created first, as it is valid, and marked as
established, after which upstream asks more of it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any, Final

from .case import NAME, Case, Step

Body = dict[str, Any]
Parent = tuple[Any, Any]
"""A list or an object, and where in it."""

COLLECTION: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP: Final = f"{NAME}.example.com"
FULL_NAME: Final = f"things.{GROUP}"

_MERGE: Final = "application/merge-patch+json"
_ESTABLISHED: Final = {
    "status": {
        "acceptedNames": {"plural": "things", "kind": "Thing"},
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "r", "message": ""}
            for kind in ("NamesAccepted", "Established")
        ],
    }
}


def cases(random: Random) -> Case:
    """Something is done to a definition."""
    return random.choice((_created, _created, _updated, _updated, _status_written))(random)


def _created(random: Random) -> Case:
    body = definition(random)
    mutate(random, body, random.choice((1, 1, 1, 2)))
    return Case("a new definition", [Step("POST", f"{COLLECTION}?dryRun=All", body)])


def _updated(random: Random) -> Case:
    seed = random.random()

    def edit(found: Body) -> Body:
        again = Random(seed)
        if "spec" in found:
            found.pop("status", None)
            mutate(again, found, again.choice((1, 1, 2)))
        return found

    steps = [
        Step("POST", COLLECTION, definition(random)),
        Step("PATCH", f"{COLLECTION}/{FULL_NAME}/status", _ESTABLISHED, _MERGE, attempts=10),
        Step("PUT", f"{COLLECTION}/{FULL_NAME}?dryRun=All", edit=edit, about=f"mutated, seed {seed}", attempts=10),
    ]
    return Case("an updated definition", steps, cleanup=[Step("DELETE", f"{COLLECTION}/{FULL_NAME}")])


def _status_written(random: Random) -> Case:
    seed = random.random()

    def edit(found: Body) -> Body:
        again = Random(seed)
        if "spec" in found:
            found["spec"]["scope"] = "Nowhere"
            found["metadata"].setdefault("labels", {})["a"] = again.choice(("b", "b c"))
            found["status"]["acceptedNames"] = _names(again) | {"kind": again.choice(("Thing", "thingList", "T_"))}
            found["status"]["storedVersions"] = again.choice((["v1"], ["v9"], [], ["v1", "v9"]))
        return found

    steps = [
        Step("POST", COLLECTION, definition(random)),
        Step("PUT", f"{COLLECTION}/{FULL_NAME}/status?dryRun=All", edit=edit, about=f"seed {seed}", attempts=10),
    ]
    return Case("a definition's status", steps, cleanup=[Step("DELETE", f"{COLLECTION}/{FULL_NAME}")])


# Valid definitions


def definition(random: Random) -> Body:
    """A definition that is valid as it is."""
    names = [f"v{number}" for number in range(1, random.choice((1, 1, 2, 3)) + 1)]
    alike = random.random() < 0.5
    shared = _version(random)
    versions = []
    for index, name in enumerate(names):
        own = copy.deepcopy(shared) if alike else _version(random)
        versions.append({"name": name, "served": random.random() < 0.9, "storage": index == 0, **own})
        if random.random() < 0.2:
            versions[-1] |= {"deprecated": True, "deprecationWarning": "old"}
    spec: Body = {
        "group": GROUP,
        "scope": random.choice(("Namespaced", "Cluster")),
        "names": _names(random),
        "versions": versions,
    }
    if random.random() < 0.3:
        spec["conversion"] = _conversion(random)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": FULL_NAME},
        "spec": spec,
    }


def _names(random: Random) -> Body:
    names: Body = {"plural": "things", "kind": "Thing"}
    if random.random() < 0.3:
        names |= {"singular": "thing", "shortNames": ["th", "tg"], "categories": ["all"], "listKind": "ThingList"}
    return names


def _conversion(random: Random) -> Body:
    if random.random() < 0.3:
        return {"strategy": "None"}
    client: Body = {"service": {"namespace": "ns", "name": "svc", "path": "/convert", "port": 8443}}
    if random.random() < 0.5:
        client = {"url": "https://example.com:9443/convert"}
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}


def _version(random: Random) -> Body:
    spec = _object(random, 2)
    spec["properties"] |= {"replicas": {"type": "integer"}, "color": {"type": "string", "maxLength": 20}}
    status: Body = {"type": "object", "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}}}
    version: Body = {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}}
    if random.random() < 0.5:
        version["subresources"] = {"status": {}}
        if random.random() < 0.6:
            version["subresources"]["scale"] = {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            }
    if random.random() < 0.4:
        version["additionalPrinterColumns"] = [
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ]
    if random.random() < 0.4:
        version["selectableFields"] = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.replicas"}]
    return version


def _schema(random: Random, depth: int) -> Body:
    makers = _LEAVES if depth <= 0 else (*_LEAVES, _object, _object, _list, _map)
    return random.choice(makers)(random, depth)


def _object(random: Random, depth: int) -> Body:
    properties = {name: _schema(random, depth - 1) for name in random.sample(_MEMBERS, random.choice((1, 2, 3)))}
    schema: Body = {"type": "object", "properties": properties}
    if random.random() < 0.3:
        schema["required"] = [random.choice(list(properties))]
    if random.random() < 0.15:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if random.random() < 0.3:
        schema["x-kubernetes-validations"] = [
            _rule(random, f"has(self.{name})") for name in properties if "-" not in name
        ]
    return schema


def _list(random: Random, depth: int) -> Body:
    if random.random() < 0.3:
        item: Body = {"type": "object", "properties": {"k": {"type": "string", "maxLength": 9}}, "required": ["k"]}
        keyed: Body = {"type": "array", "items": item, "maxItems": 10}
        keyed |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
        if random.random() < 0.5:
            item["x-kubernetes-validations"] = [_rule(random, "self.k == oldSelf.k")]
        return keyed
    if random.random() < 0.3:
        items: Body = {"type": "string", "maxLength": 10}
        return {"type": "array", "items": items, "maxItems": 9, "x-kubernetes-list-type": "set"}
    schema: Body = {"type": "array", "items": _schema(random, depth - 1)}
    if random.random() < 0.5:
        schema["maxItems"] = random.choice((1, 10, 1000))
    if random.random() < 0.3:
        schema["x-kubernetes-validations"] = [_rule(random, "self.all(x, x == x)" if "maxItems" in schema else "true")]
    return schema


def _map(random: Random, depth: int) -> Body:
    schema: Body = {"type": "object", "additionalProperties": _schema(random, depth - 1), "maxProperties": 7}
    if random.random() < 0.3:
        schema["x-kubernetes-validations"] = [_rule(random, "self.all(k, k.size() < 9)")]
    return schema


def _text(random: Random, depth: int) -> Body:
    schema: Body = {"type": "string"}
    if random.random() < 0.4:
        schema["maxLength"] = random.choice((5, 100, 10000))
    if random.random() < 0.3:
        schema["format"] = random.choice(("date-time", "byte", "duration", "date", "uuid", "unknown", "ipv4"))
    elif random.random() < 0.3:
        schema |= {"enum": ["a", "b"], "default": "a"}
    elif random.random() < 0.3:
        schema["pattern"] = "^[a-z]*$"
    elif random.random() < 0.3:
        schema["x-kubernetes-validations"] = [_rule(random, random.choice(_TEXT_RULES))]
    return schema


def _number(random: Random, depth: int) -> Body:
    schema: Body = {"type": random.choice(("integer", "number"))}
    if random.random() < 0.3:
        schema |= {"minimum": 0, "maximum": 10, "default": 5}
    if random.random() < 0.2:
        schema["x-kubernetes-validations"] = [_rule(random, random.choice(("self >= oldSelf", "self == self")))]
    return schema


def _other(random: Random, depth: int) -> Body:
    return copy.deepcopy(
        random.choice(
            (
                {"type": "boolean", "nullable": True},
                {"x-kubernetes-int-or-string": True},
                {"x-kubernetes-preserve-unknown-fields": True},
                {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            )
        )
    )


def _rule(random: Random, text: str) -> Body:
    rule: Body = {"rule": text}
    if random.random() < 0.3:
        rule["message"] = "wrong"
    if random.random() < 0.2:
        rule["messageExpression"] = "'it is wrong'"
    if random.random() < 0.1:
        rule["reason"] = "FieldValueForbidden"
    return rule


_LEAVES: Final[tuple[Callable[[Random, int], Body], ...]] = (_text, _text, _number, _other)
_MEMBERS: Final = ("a", "b", "c", "with-dash", "namespace", "d")
_TEXT_RULES: Final = ("self.startsWith('a')", "self.size() < 5", "self == oldSelf", "self.matches('^a')", "self != 'x'")

# Mutations


def mutate(random: Random, body: Body, count: int) -> None:
    """Changes something at random places of the spec."""
    for _ in range(count):
        random.choice((_in_schema, _in_schema, _in_schema, _in_rules, _anywhere, _anywhere, _around))(random, body)


def _places(value: Any) -> list[Parent]:
    """Every place in some JSON."""
    places: list[Parent] = []
    pending = [value]
    while pending:
        each = pending.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        for key in keys:
            places.append((each, key))
            pending.append(each[key])
    return places


def _anywhere(random: Random, body: Body) -> None:
    """A value is another, is gone, or is there twice."""
    container, key = random.choice(_places(body["spec"]))
    what = random.random()
    if what < 0.3:
        del container[key]
    elif what < 0.45 and isinstance(container, list):
        container.append(copy.deepcopy(container[key]))
    else:
        container[key] = _junk(random, container[key])


def _junk(random: Random, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return random.choice(("", "x", "A_b", "a.b", "-", "very" * 40, ".spec.none", "v9", "None", "object", "string"))
    if isinstance(value, int):
        return random.choice((-1, 0, 1, 99999999, 2**40))
    if isinstance(value, list):
        return random.choice(([], ["x"], ["", "x"], value + value))
    return random.choice(({}, {"x": 1}, value))


def _schemas(body: Body) -> list[Body]:
    """Every schema in a definition."""
    schemas: list[Body] = []
    pending = []
    for version in body["spec"].get("versions") or ():
        schema = version.get("schema") if isinstance(version, dict) else None
        if isinstance(schema, dict):
            pending.append(schema.get("openAPIV3Schema"))
    while pending:
        schema = pending.pop()
        if not isinstance(schema, dict):
            continue
        schemas.append(schema)
        properties = schema.get("properties")
        pending += list(properties.values()) if isinstance(properties, dict) else []
        pending += [schema.get("items"), schema.get("additionalProperties")]
    return schemas


def _in_schema(random: Random, body: Body) -> None:
    """A schema says something else, or something more; not with an empty list or object, which upstream tells from
    none at the root of a schema and for dependencies."""
    schemas = _schemas(body)
    if schemas:
        schema = random.choice(schemas)
        name, values = random.choice(_KEYWORDS)
        if random.random() < 0.15 and schema:
            del schema[random.choice(list(schema))]
        else:
            schema[name] = copy.deepcopy(random.choice(values))


_TEXT: Final[Body] = {"type": "string"}
_KEYWORDS: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("type", ("string", "integer", "object", "array", "boolean", "number", "null", "text", "")),
    ("format", ("date-time", "int32", "double", "byte", "nonsense", "date", "email")),
    ("nullable", (True,)),
    ("default", ("x", 1, {}, {"a": 1}, [], [1], True, {"unknown": True}, 1.5)),
    ("enum", (["x", "x"], [1, "x"], [{}])),
    ("pattern", ("[", "^a$", "(?i)a", "\\")),
    ("maxLength", (0, -1, 5, 2**40)),
    ("minLength", (0, -1, 5)),
    ("maxItems", (0, -1, 5, 2**40)),
    ("maxProperties", (0, -1, 5)),
    ("minimum", (0, 1.5, -1)),
    ("exclusiveMinimum", (True,)),
    ("multipleOf", (0, 2, -1)),
    ("required", (["a"], ["a", "a"], [""])),
    ("uniqueItems", (True, False)),
    ("items", (_TEXT, {}, [_TEXT], {"type": "object"})),
    ("properties", ({"a": _TEXT}, {"metadata": {"type": "object"}}, {"a": {}})),
    ("additionalProperties", (True, False, _TEXT, {})),
    ("allOf", ([{"required": ["a"]}], [{"type": "string"}], [{"properties": {"z": {"maxLength": 1}}}])),
    ("anyOf", ([{"minLength": 1}, {"maxLength": 0}], [{"default": 1}])),
    ("oneOf", ([{"items": {"minLength": 1}}], [{"description": "x"}])),
    ("not", ({"required": ["a"]}, {"type": "string"}, {})),
    ("$ref", ("#/a",)),
    ("definitions", ({"a": _TEXT},)),
    ("dependencies", ({"a": ["b"]}, {"a": _TEXT})),
    ("patternProperties", ({"a": _TEXT},)),
    ("additionalItems", (True, _TEXT)),
    ("id", ("x",)),
    ("$schema", ("x",)),
    ("title", ("x",)),
    ("description", ("x <b> y",)),
    ("example", ("x", {"b": 1, "a": 2}, None)),
    ("externalDocs", ({"url": "https://example.com"},)),
    ("x-kubernetes-preserve-unknown-fields", (True, False)),
    ("x-kubernetes-embedded-resource", (True,)),
    ("x-kubernetes-int-or-string", (True,)),
    ("x-kubernetes-list-type", ("set", "map", "atomic", "other")),
    ("x-kubernetes-list-map-keys", (["k"], ["a", "a"])),
    ("x-kubernetes-map-type", ("atomic", "granular", "other")),
    ("x-kubernetes-validations", ([{"rule": "true"}], [{"rule": "self == oldSelf"}], [{"rule": ""}])),
)


def _in_rules(random: Random, body: Body) -> None:
    """A rule is another, or there is one more."""
    schemas = _schemas(body)
    if not schemas:
        return
    ruled = [schema for schema in schemas if schema.get("x-kubernetes-validations")]
    if not ruled or random.random() < 0.3:
        schema = random.choice(schemas)
        schema.setdefault("x-kubernetes-validations", []).append({"rule": random.choice(_RULES)})
        return
    rule = random.choice(random.choice(ruled)["x-kubernetes-validations"])
    if isinstance(rule, dict):
        name, values = random.choice(_RULE_MEMBERS)
        rule[name] = random.choice(values)


_RULES: Final = (
    "self",
    "self ==",
    "self.a == self.b",
    "self.nothing > 1",
    "self.exists(x, x == 'a')",
    "self == oldSelf",
    "self.all(x, self.all(y, x != y))",
    "self.with__dash__dash == 'x'",
    "has(self.a) && self.a == 1",
    "self.size() > 2",
    "oldSelf.hasValue()",
    "self.map(x, x + x).size() > 3",
    "self.metadata.name == 'x'",
    "self.a.matches('[')",
    "duration('1x') == self",
    "self.spec.replicas <= 10",
    "type(self) == string",
    "self.a.b.c",
    "'a' in self",
    "self.filter(x, x.k == 'a').size() == 1",
    "self.join(',').size() > 1",
    "1 / 0 == 1",
    "self + 1 > 2",
    "[self, 1].size() == 2",
    "dyn(self) == 1",
    "unknown(self)",
    "self.a.all(x, x.matches('^a+$'))",
    "self.isSorted()",
    "self.orValue(1) == 1",
    "quantity(self).isInteger()",
)
_RULE_MEMBERS: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("rule", _RULES),
    ("rule", ("", "  ", "self ==\n  self", "true")),
    ("message", ("", "  ", "two\nlines", "fine")),
    ("messageExpression", ("''", "1", "self", "'a' +", "  ", "'x'", "string(self)", "self.a")),
    ("reason", ("FieldValueInvalid", "Other", "")),
    ("fieldPath", (".a", ".b", "a", "['a']", ".a[0]", ".a.b", " ", ".a\n", ".", "['a", ".with-dash")),
    ("optionalOldSelf", (True, False)),
)


def _around(random: Random, body: Body) -> None:
    """Change a definition outside of its schemas."""
    spec = body["spec"]
    metadata = body["metadata"]
    versions = spec.get("versions")
    version = random.choice(versions) if isinstance(versions, list) and versions else {}
    what = random.choice(
        (
            (metadata, "name", ("things", "Things.x", "")),
            (metadata, "annotations", ({"api-approved.kubernetes.io": "https://x.y/z"}, {"a b": "c"})),
            (metadata, "finalizers", (["foo"], ["a b"], ["example.com/x"])),
            (metadata, "labels", ({"a b": "c"}, {"a": "b"})),
            (spec, "group", ("", "x", "a.k8s.io", "A.b", "x.kubernetes.io")),
            (spec, "scope", ("", "cluster", "Cluster", "Namespaced")),
            (spec, "preserveUnknownFields", (True, False)),
            (spec, "versions", ([], None, [*(versions or ()), copy.deepcopy(version)])),
            (spec, "conversion", _CONVERSIONS),
            (
                spec["names"] if isinstance(spec.get("names"), dict) else {},
                "kind",
                ("", "Other", "thing_", "ThingList"),
            ),
            (spec["names"] if isinstance(spec.get("names"), dict) else {}, "shortNames", (["A"], [""], ["ok"])),
            (version, "storage", (True, False)),
            (version, "served", (True, False)),
            (version, "deprecationWarning", ("", "x", "x" * 300, "a\x07")),
            (version, "schema", ({}, None)),
            (version, "subresources", _SUBRESOURCES),
            (version, "additionalPrinterColumns", _COLUMNS),
            (version, "selectableFields", _FIELDS),
        )
    )
    container, key, values = what
    if isinstance(container, dict):
        container[key] = copy.deepcopy(random.choice(values))


def _webhook(**client: Any) -> Body:
    webhook: Body = {"conversionReviewVersions": ["v1", "v1beta1"], "clientConfig": client}
    return {"strategy": "Webhook", "webhook": webhook}


_CONVERSIONS: Final[tuple[Any, ...]] = (
    None,
    {"strategy": "Webhook"},
    {"strategy": "Other"},
    {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}},
    {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v9", "v9", "V"], "clientConfig": {}}},
    _webhook(url="http://user@example.com/?a=b#c"),
    _webhook(url="https://x", service={"namespace": "a", "name": "b"}),
    _webhook(url="://"),
    _webhook(url="https://a b/"),
    _webhook(service={"namespace": "", "name": "b", "port": 0, "path": "a//B"}),
    _webhook(service={"namespace": "a", "name": "b", "path": "//"}),
    _webhook(url="https://example.com", caBundle="bm8gcGVt"),
    _webhook(
        url="https://example.com",
        caBundle="LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=",
    ),
    _webhook(url="https://example.com", caBundle="LS0tLS1CRUdJTiBLRVktLS0tLQpNQT09Ci0tLS0tRU5EIEtFWS0tLS0tCg=="),
)
_SUBRESOURCES: Final[tuple[Any, ...]] = (
    None,
    {},
    {"status": {}},
    {"scale": {}},
    {"scale": {"specReplicasPath": "spec.x", "statusReplicasPath": ".spec.x", "labelSelectorPath": ".x"}},
    {"scale": {"specReplicasPath": ".spec", "statusReplicasPath": ".status.", "labelSelectorPath": "x"}},
    {"scale": {"specReplicasPath": ".spec.a[0]", "statusReplicasPath": ".status.b", "labelSelectorPath": ""}},
)
_COLUMNS: Final[tuple[Any, ...]] = (
    [],
    [{"name": "", "type": "", "jsonPath": ""}],
    [{"name": "a", "type": "text", "format": "x", "jsonPath": "x"}],
    [{"name": "a", "type": "date", "format": "date", "jsonPath": ".a[", "priority": -1}],
)
_FIELDS: Final[tuple[Any, ...]] = (
    [],
    [
        {"jsonPath": ""},
        {"jsonPath": "x"},
        {"jsonPath": ".spec"},
        {"jsonPath": ".spec.color"},
        {"jsonPath": ".spec.color"},
    ],
    [
        {"jsonPath": ".spec.color["},
        {"jsonPath": ".spec."},
        {"jsonPath": ".spec['color']"},
        {"jsonPath": ".metadata.name"},
    ],
    [{"jsonPath": f".spec.{name}"} for name in (*_MEMBERS, "replicas", "color", "x", "y")],
    [{"jsonPath": ".spec.color"}, {"jsonPath": ".status.phase"}],
)
