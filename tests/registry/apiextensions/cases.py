"""Definitions with errors or warnings; upstream's answers are in `answers.json`."""

from __future__ import annotations

from typing import Any, Final

from tests.registry.apiextensions.definitions import Body, definition, schema, version

_TEXT: Final = {"type": "string"}
_STATUS: Final[dict[str, Any]] = {"status": {}}


def _webhook(versions: Any = ("v1",), **client: Any) -> Body:
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": list(versions), "clientConfig": client}}


def _scale(spec: str, status: str, selector: str | None = None) -> Body:
    scale: Body = {"specReplicasPath": spec, "statusReplicasPath": status}
    return {"scale": scale if selector is None else {**scale, "labelSelectorPath": selector}}


def _fields(*paths: str) -> list[Body]:
    return [{"jsonPath": path} for path in paths]


def _ruled(rule: str, of: Body | None = None, **members: Any) -> Body:
    return schema(a={**(of or _TEXT), "x-kubernetes-validations": [{"rule": rule, **members}]})


_SELECTED: Final = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "properties": {"name": _TEXT}},
        "spec": {
            "type": "object",
            "properties": {
                "text": _TEXT,
                "number": {"type": "number"},
                "flag": {"type": "boolean"},
                "whole": {"type": "integer"},
                "map": {"type": "object", "additionalProperties": _TEXT},
                "either": {"x-kubernetes-int-or-string": True},
            },
        },
    },
}
_TWO: Final = [version(of=schema(a=_TEXT)), version("v2", of=schema(b=_TEXT))]
_UNLIMITED: Final = {"type": "array", "items": {"type": "string"}}

CREATED: Final[dict[str, Body]] = {
    "nothing wrong": definition(),
    "no versions": definition(versions=[]),
    "versions not given": definition(versions=...),
    "a version twice": definition(versions=[version(), version()]),
    "two storage versions": definition(versions=[version(), version("v2", storage=True, subresources=_STATUS)]),
    "no storage version": definition(versions=[version(storage=False)]),
    "versions that differ are shown": definition(
        versions=[
            {**_TWO[0], "additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": ".a"}]},
            {**_TWO[1], "storage": True, "subresources": _scale(".spec.a", ".status.a", ".status.b")},
        ]
    ),
    "names of versions": definition(versions=[version("V1", storage=True), version("v-")]),
    "deprecation warnings": definition(
        versions=[
            version(deprecationWarning="x"),
            version("v2", deprecated=True, deprecationWarning=""),
            version("v3", deprecated=True, deprecationWarning="é" * 200 + "\x07\x85"),
        ]
    ),
    "metadata": definition({"name": "x", "labels": {"a b": "c"}, "finalizers": ["foo", "a b"], "generateName": "G_"}),
    "group empty": definition(group=""),
    "group without a dot": definition(group="x"),
    "group in capitals": definition(group="A.b"),
    "scope empty": definition(scope=""),
    "scope unknown": definition(scope="Everywhere"),
    "names empty": definition(names={"plural": "", "kind": ""}),
    "names wrong": definition(
        names={
            "plural": "A",
            "kind": "b_",
            "singular": "-",
            "listKind": "b_",
            "shortNames": ["a", "B"],
            "categories": ["", "x"],
        }
    ),
    "group of the community": definition({"name": "foos.x.k8s.io"}, group="x.k8s.io"),
    "approval that is no URL": definition(
        {"name": "foos.k8s.io", "annotations": {"api-approved.kubernetes.io": "x"}}, group="k8s.io"
    ),
    "approval bypassed": definition(
        {"name": "foos.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved, for now"}}, group="k8s.io"
    ),
    "approved": definition(
        {"name": "foos.a.kubernetes.io", "annotations": {"api-approved.kubernetes.io": "https://x"}},
        group="a.kubernetes.io",
    ),
    "conversion by None": definition(conversion={"strategy": "None", "webhook": {}}),
    "conversion by None with a webhook": definition(conversion={**_webhook(url="https://x"), "strategy": "None"}),
    "conversion without strategy": definition(conversion={}),
    "conversion unknown": definition(conversion={"strategy": "Other"}),
    "webhook without client": definition(conversion={"strategy": "Webhook"}),
    "webhook by service": definition(
        conversion=_webhook(
            ("v1", "v1", "V9"), service={"name": "", "namespace": "b", "path": "x//y", "port": 0}, caBundle="YWJj"
        )
    ),
    "webhook by URL": definition(conversion=_webhook((), url="http://u:p@/x?y=1#z")),
    "webhook by a URL that cannot be read": definition(conversion=_webhook(("v3",), url="https://h/%zz")),
    "webhook by both": definition(conversion=_webhook(url="https://x", service={"name": "a", "namespace": "b"})),
    "unknown fields kept": definition(preserveUnknownFields=True),
    "unknown fields kept and converted": definition(
        preserveUnknownFields=True, conversion=_webhook(url="https://example.com")
    ),
    "unknown fields kept and defaults": definition(
        preserveUnknownFields=True, versions=[version(of=schema(a={"type": "string", "default": "x"}))]
    ),
    "schema not given": definition(versions=[{"name": "v1", "served": True, "storage": True}]),
    "schema in one version": definition(versions=[version(schema={}), version("v2")]),
    "scale of one version": definition(versions=[version(subresources=_scale("spec.x", ".spec.y", ".foo"))]),
    "scale of two versions": definition(
        versions=[
            version(subresources=_scale("", ".")),
            version("v2", subresources=_scale(".spec", ".status", "")),
        ]
    ),
    "columns of one version": definition(
        versions=[
            version(
                additionalPrinterColumns=[
                    {"name": "", "type": "", "jsonPath": ""},
                    {"name": "a", "type": "x", "format": "y", "jsonPath": "a"},
                    {"name": "a", "type": "date", "format": "date", "jsonPath": "."},
                ]
            )
        ]
    ),
    "columns of one version of two": definition(
        versions=[version(), version("v2", additionalPrinterColumns=[{"name": "a", "type": "b", "jsonPath": ".c"}])]
    ),
    "fields of one version": definition(
        versions=[
            version(
                of=_SELECTED,
                selectableFields=_fields(
                    "",
                    "text",
                    ".text",
                    ".spec.text[",
                    "..",
                    ".spec",
                    ".spec.",
                    ".spec.text",
                    ".spec.text",
                    ".spec.number",
                    ".spec.map.k",
                    ".spec.map",
                    ".metadata.name",
                    ".spec['text']",
                    ".metadata",
                    ".spec.flag",
                    ".spec.whole",
                    ".spec..",
                    ".spec.either",
                ),
            )
        ]
    ),
    "too many fields": definition(
        versions=[
            version(
                of=schema(**{f"x{number}": _TEXT for number in range(10)}),
                selectableFields=_fields(*(f".spec.x{number}" for number in range(10))),
            )
        ]
    ),
    "fields of one version of two": definition(
        versions=[_TWO[0], {**_TWO[1], "selectableFields": _fields(".spec.a", ".spec.b")}]
    ),
    "formats that nobody knows": definition(
        versions=[
            version(
                of=schema(
                    a={"type": "string", "format": "foo", "default": "x"},
                    b={"type": "array", "items": {"type": "number", "format": "date"}},
                    c={"type": "string", "format": "date-time"},
                )
            )
        ]
    ),
    "a schema that is not structural": definition(versions=[version(of=schema(a={}))]),
    "a schema of one version of two": definition(versions=[version(), version("v2", of=schema(a={"type": "null"}))]),
    "status and what its root may not say": definition(
        versions=[version(of={"type": "object", "maxProperties": 1, "properties": {"a": _TEXT}}, subresources=_STATUS)]
    ),
    "rule that cannot be read": definition(versions=[version(of=_ruled("self =="))]),
    "rule that is no boolean": definition(versions=[version(of=_ruled("self"))]),
    "rule of a member that there is not": definition(
        versions=[version(of=_ruled("self.b", {"type": "object", "properties": {"a": _TEXT}}))]
    ),
    "rule about itself": definition(
        versions=[version(of=_ruled("self == 1", {"type": "object", "properties": {"a": _TEXT}}))]
    ),
    "rule with a pattern that cannot be read": definition(versions=[version(of=_ruled("self.matches('[')"))]),
    "rule empty": definition(versions=[version(of=_ruled(" "))]),
    "rule over two lines": definition(versions=[version(of=_ruled("self\n== 'a'"))]),
    "message of two lines": definition(versions=[version(of=_ruled("true", message="a\nb"))]),
    "message that is no text": definition(versions=[version(of=_ruled("true", messageExpression="1"))]),
    "message that cannot be read": definition(versions=[version(of=_ruled("true", messageExpression="'a' +"))]),
    "message that is empty": definition(versions=[version(of=_ruled("true", messageExpression=" "))]),
    "message that costs too much": definition(
        versions=[version(of=_ruled("true", _UNLIMITED, messageExpression="self.join(string(self.map(x, x).size()))"))]
    ),
    "reason unknown": definition(versions=[version(of=_ruled("true", reason="Because"))]),
    "path unknown": definition(versions=[version(of=_ruled("true", fieldPath=".b"))]),
    "old value optional and not used": definition(versions=[version(of=_ruled("true", optionalOldSelf=True))]),
    "old value optional": definition(versions=[version(of=_ruled("oldSelf.hasValue()", optionalOldSelf=True))]),
    "old value of what cannot be told": definition(
        versions=[
            version(
                of=schema(
                    a={"type": "array", "items": _ruled("self == oldSelf")["properties"]["spec"]["properties"]["a"]}
                )
            )
        ]
    ),
    "rule that costs too much": definition(
        versions=[version(of=_ruled("self.all(x, self.all(y, x == y))", _UNLIMITED))]
    ),
    "rule that costs a little too much": definition(
        versions=[
            version(
                of=_ruled(
                    "self.all(x, self.all(y, x != y))",
                    {**_UNLIMITED, "maxItems": 170, "items": {"type": "string", "maxLength": 900}},
                )
            )
        ]
    ),
    "rules that cost too much together": definition(
        versions=[
            version(
                of=schema(
                    **{
                        f"x{number}": {
                            "type": "array",
                            "maxItems": 1000,
                            "items": {"type": "string", "maxLength": 200},
                            "x-kubernetes-validations": [{"rule": "self.all(x, x.matches('^[a-z]+$'))"}],
                        }
                        for number in range(150)
                    }
                )
            )
        ]
    ),
    "rule of values that nobody knows": definition(
        versions=[version(of=_ruled("true", {"x-kubernetes-preserve-unknown-fields": True}))]
    ),
    "default that breaks a rule": definition(
        versions=[version(of=_ruled("self != 'x'", {"type": "string", "default": "x"}, message="not x"))]
    ),
    "rules of every type": definition(
        versions=[
            version(
                of=schema(
                    time={"type": "string", "format": "date-time"},
                    length={"type": "string", "format": "duration"},
                    data={"type": "string", "format": "byte"},
                    either={"x-kubernetes-int-or-string": True},
                    **{"with-dash": {"type": "integer"}, "namespace": _TEXT},
                )
                | {
                    "x-kubernetes-validations": [
                        {"rule": "self.spec.time > timestamp('2020-01-01T00:00:00Z')"},
                        {"rule": "self.spec.length < duration('1h')"},
                        {"rule": "self.spec.data == b'a'"},
                        {"rule": "type(self.spec.either) == int"},
                        {"rule": "self.spec.with__dash__dash > 1 && self.spec.namespace == 'a'"},
                        {"rule": "self.metadata.name.startsWith('a') && self.kind == 'Foo'"},
                        {"rule": "self.metadata.namespace == 'a'"},
                    ]
                }
            )
        ]
    ),
}

UPDATED: Final[dict[str, tuple[Body, Body]]] = {
    "nothing changed": (definition(), definition()),
    "immutable once established": (
        definition(),
        definition(scope="Cluster", names={"plural": "foos", "kind": "Bar"}),
    ),
    "always immutable": (definition(), definition(group="r.example.com", names={"plural": "bars", "kind": "Foo"})),
    "another storage version": (
        definition(),
        definition(versions=[version(storage=False), version("v2", storage=True)]),
    ),
    "a stored version gone": (definition(), definition(versions=[version("v2", storage=True)])),
    "a CA bundle once established": (definition(), definition(conversion=_webhook(url="https://x.y", caBundle="YWJj"))),
    "a CA bundle that cannot be parsed": (
        definition(),
        definition(
            conversion=_webhook(
                url="https://x.y",
                caBundle="LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=",
            )
        ),
    ),
    "formats that were not there": (
        definition(versions=[version(of=schema(a={"type": "string", "format": "foo"}))]),
        definition(
            versions=[version(of=schema(a={"type": "string", "format": "foo"}, b={"type": "string", "format": "bar"}))]
        ),
    ),
    "unknown fields kept": (definition(), definition(preserveUnknownFields=True)),
    "a rule that costs too much": (
        definition(),
        definition(versions=[version(of=_ruled("self.all(x, self.all(y, x == y))", _UNLIMITED))]),
    ),
}
