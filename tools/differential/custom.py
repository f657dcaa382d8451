"""Custom resources: objects of random definitions, in every version, by every verb.

The definitions are made once, before the first case, as a server takes seconds until it serves them. Cases are about
objects of one of them: created, changed in every way by several managers, read as tables, metadata and YAML, listed,
watched and deleted.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any, Final

import yaml

from tools.compare_schemas.values import changed, value

from .apply_sequences import spoiled
from .case import NAME, NAMESPACE, SINCE, Case, Generator, Step
from .custom_definitions import Defined, served
from .subresources import Body

DEFINITIONS: Final = 40
"""Definitions that the objects belong to."""

_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_YAML: Final = "application/yaml"
_MANAGERS: Final = ("one", "two", "three")
_OWNED: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "owner",
    "uid": "7a7a7a7a-0000-4000-8000-000000000001",
}
_TYPE_META: Final = ("apiVersion", "kind", "metadata")
_LABELS: Final[tuple[Any, ...]] = ({"a": "b"}, {"a": "c", "d": "e"}, {}, {"a b": "c"}, {"a": 1}, {"a": None}, None)
_FINALIZERS: Final[tuple[Any, ...]] = (["example.com/a"], ["example.com/a", "b"], [], ["a b"], ["foregroundDeletion"])


@cache
def pool(seed: int) -> tuple[Defined, ...]:
    """The definitions of a seed."""
    return tuple(served(Random(f"{seed}/custom/definition/{each}"), f"def{each}") for each in range(DEFINITIONS))


def of_pool(definitions: Sequence[Defined]) -> Generator:
    """Makes cases about objects of these definitions."""
    return lambda random: Cases(random, random.choice(definitions)).case()


def cases(random: Random) -> Case:
    """A case about an object of any definition of a seed."""
    return of_pool(pool(1))(random)


class Cases:
    """Makes the steps of a case."""

    def __init__(self, random: Random, definition: Defined, name: str = NAME) -> None:
        self.random = random
        self.definition = definition
        self.name = name
        self.version = random.choice(definition.versions)
        self._makers: tuple[tuple[int, Callable[[], Step]], ...] = (
            (5, self._put),
            (4, self._merge),
            (3, self._json),
            (7, self._apply),
            (2, self._status_put),
            (2, self._status_patch),
            (1, self._status_apply),
            (3, self._scale),
            (3, self._read),
            (3, self._list),
            (2, self._subresource_read),
            (1, self._create_another),
            (1, self._delete_collection),
            (1, self._watch),
            (1, self._delete),
        )

    def case(self) -> Case:
        steps = [self._create()]
        weights = [weight for weight, _ in self._makers]
        for _ in range(self.random.choice((2, 4, 6, 8))):
            if self.random.random() < 0.25:
                self.version = self.random.choice(self.definition.versions)
            steps.append(self.random.choices(self._makers, weights)[0][1]())
        for version in self.definition.versions:
            self.version = version
            steps.append(Step("GET", self.path))
        steps.append(self._delete(whole=True))
        self.version = self.definition.versions[0]
        path = self.path
        freed = {"metadata": {"finalizers": None}}
        name = self.definition.body["metadata"]["name"]
        return Case(
            f"{name}: {json.dumps(self.definition.body['spec'])}",
            steps,
            [Step("PATCH", path, freed, _MERGE), Step("DELETE", path), Step("DELETE", f"{path}-2")],
        )

    # Places

    @property
    def collection(self) -> str:
        return self.definition.collection(self.version["name"], NAMESPACE)

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"

    @property
    def schema(self) -> Body:
        found: Body = self.version["schema"]["openAPIV3Schema"]
        return found

    def _schema_of(self, part: str) -> Body:
        found: Body = self.schema.get("properties", {}).get(part, {"type": "object"})
        return found

    def _head(self) -> Body:
        spec = self.definition.body["spec"]
        return {"apiVersion": f"{spec['group']}/{self.version['name']}", "kind": spec["names"]["kind"]}

    def _query(self, **more: str) -> str:
        random, fields = self.random, dict(more)
        if random.random() < 0.6:
            fields["fieldManager"] = random.choice(_MANAGERS)
        if random.random() < 0.4:
            fields["fieldValidation"] = random.choice(("Strict", "Strict", "Warn", "Ignore", "Ignore", "Other"))
        if random.random() < 0.1 and "dryRun" not in fields:
            fields["dryRun"] = random.choice(("All", "All", "Some"))
        return "?" + "&".join(f"{name}={each}" for name, each in fields.items()) if fields else ""

    # Bodies

    def _fine(self, schema: Body) -> Any:
        """A value that fits a schema as far as types go."""
        random = self.random
        if "default" in schema and random.random() < 0.2:
            return copy.deepcopy(schema["default"])
        if schema.get("enum"):
            return copy.deepcopy(random.choice(schema["enum"]))
        if schema.get("x-kubernetes-embedded-resource"):
            return {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "x", "labels": {"a": "b"}},
                "spec": {"a": 1},
            }
        match schema.get("type"):
            case "string":
                texts = ("red", "blue", "", "a", "2026-01-02T03:04:05Z", "black", "app=x")
                return "2026-01-02T03:04:05Z" if "format" in schema else random.choice(texts)
            case "integer":
                return random.choice((0, 1, 2, 3, 5, 11))
            case "number":
                return random.choice((0, 1, 1.0, 1.5, -2.25, 1e21))
            case "boolean":
                return random.random() < 0.5
            case "array":
                items = [self._fine(schema["items"]) for _ in range(random.choice((0, 1, 2, 2, 3)))]
                is_open = schema.get("x-kubernetes-list-type") in (None, "atomic") or random.random() < 0.1
                return items if is_open else _unlike(items, schema.get("x-kubernetes-list-map-keys"))
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                names = random.sample(("a", "b", "c"), random.choice((0, 1, 2)))
                return {name: self._fine(schema["additionalProperties"]) for name in names}
            case "object":
                found = {}
                for name, each in (schema.get("properties") or {}).items():
                    if name in (schema.get("required") or ()) or random.random() < 0.6:
                        found[name] = self._fine(each)
                if schema.get("x-kubernetes-preserve-unknown-fields"):
                    found["flag"] = random.choice((True, "x", 1, None, {"a": [1, None]}))
                return found
        return random.choice((1, "50%", "x"))

    def _part(self, part: str) -> Any:
        """A spec or a status."""
        make = value if self.random.random() < 0.15 else None
        schema = self._schema_of(part)
        return _whole_numbers(self._fine(schema) if make is None else make(self.random, schema))

    def _metadata(self, body: Body) -> None:
        random, metadata = self.random, body.setdefault("metadata", {})
        if not isinstance(metadata, dict):
            return
        if random.random() < 0.3:
            metadata["labels"] = random.choice(_LABELS)
        if random.random() < 0.15:
            metadata["annotations"] = random.choice(_LABELS)
        if random.random() < 0.12:
            metadata["finalizers"] = random.choice(_FINALIZERS)
        if random.random() < 0.1:
            owner = _OWNED | random.choice(({}, {"controller": True}, {"uid": ""}, {"kind": "Node"}, {"x": 1}))
            metadata["ownerReferences"] = [owner]
        if random.random() < 0.05:
            metadata["unknown"] = 1

    def _whole(self) -> Body:
        """An object; a mutation here and there."""
        random = self.random
        body: Body = {**self._head(), "metadata": {"name": self.name, "labels": {"case": self.name}}}
        for part in self.schema.get("properties", {}):
            if part not in _TYPE_META and random.random() < (0.95 if part == "spec" else 0.5):
                body[part] = self._part(part)
        if random.random() < 0.4:
            self._metadata(body)
        if random.random() < 0.15:
            body["unknown"] = {"a": 1}
        if random.random() < 0.2:
            body = spoiled(random, body)
        whole: dict[str, Any] = _whole_numbers(body)
        return whole

    def _sent(self, body: Any) -> tuple[Any, str]:
        """A body and its content type."""
        if self.random.random() < 0.12:
            return yaml.safe_dump(body, sort_keys=False), _YAML
        return body, "application/json"

    # Steps that write

    def attempt(self) -> Step:
        """A dry run of a creation."""
        return Step("POST", f"{self.collection}{self._query(dryRun='All')}", self._whole())

    def _create(self) -> Step:
        body, content_type = self._sent(self._whole())
        return Step("POST", self.collection + self._query(), body, content_type, accept=self._accept(write=True))

    def _create_another(self) -> Step:
        body = self._whole()
        if isinstance(body.get("metadata"), dict):
            if self.random.random() < 0.5:
                body["metadata"].pop("name", None)
                body["metadata"]["generateName"] = f"{self.name}-gen-"
                return Step("POST", f"{self.collection}?dryRun=All", body)
            body["metadata"]["name"] = f"{self.name}-2"
        return Step("POST", self.collection + self._query(), body)

    def _put(self) -> Step:
        return self._edited(self.path, ("spec", "status", "data"))

    def _status_put(self) -> Step:
        return self._edited(f"{self.path}/status", ("status", "spec") if self.random.random() < 0.3 else ("status",))

    def _edited(self, path: str, parts: tuple[str, ...]) -> Step:
        seed, query = self.random.random(), self._query()
        fresh = {part: self._part(part) for part in parts}
        schemas = {part: self._schema_of(part) for part in parts}
        how = self.random.choice(("fresh", "fresh", "changed", "metadata", "spoiled", "same", "head"))
        if how == "head" and path.endswith("/status"):
            how = "same"  # upstream stores the status of another kind, and forgets all owners

        def edit(found: Any) -> Any:
            again = Random(seed)
            if not isinstance(found, dict) or found.get("kind") == "Status":
                return {}
            match how:
                case "fresh":
                    part = again.choice(parts)
                    found[part] = fresh[part]
                case "changed":
                    for part in parts:
                        if part in found:
                            found[part] = _whole_numbers(changed(again, found[part], schemas[part]))
                case "metadata":
                    Cases(again, self.definition)._metadata(found)
                    found["metadata"].pop(again.choice(("x", "x", "resourceVersion", "uid", "managedFields")), None)
                case "spoiled":
                    kept = found.pop("metadata")
                    found = spoiled(again, found)
                    found["metadata"] = kept
                case "head":
                    found[again.choice(("kind", "apiVersion"))] = again.choice(("", "Other", "a/b", None, 1))
            return found

        return Step("PUT", path + query, edit=edit, about=f"{how}, seed {seed} {json.dumps(fresh)}", attempts=3)

    def _patch_body(self, parts: tuple[str, ...]) -> Body:
        random = self.random
        part = random.choice(parts)
        full = self._part(part)
        if isinstance(full, dict):
            for name in list(full):
                if random.random() < 0.4:
                    del full[name]
                elif random.random() < 0.15:
                    full[name] = None
        body: Body = {part: full}
        if random.random() < 0.3:
            self._metadata(body)
        if random.random() < 0.1:
            body = spoiled(random, body)
        return body

    def _merge(self) -> Step:
        content_type = _MERGE if self.random.random() < 0.95 else "application/strategic-merge-patch+json"
        return Step(
            "PATCH", self.path + self._query(), self._patch_body(("spec", "spec", "status", "data")), content_type
        )

    def _status_patch(self) -> Step:
        path = f"{self.path}/status"
        if self.random.random() < 0.3:
            return Step("PATCH", path + self._query(), self._operations("status"), _JSON)
        return Step("PATCH", path + self._query(), self._patch_body(("status", "status", "spec")), _MERGE)

    def _operations(self, part: str) -> list[Body]:
        random, found = self.random, []
        for _ in range(random.choice((1, 1, 2, 3))):
            names = [*(self._schema_of(part).get("properties") or {"x": {}}), "unknown"]
            name = random.choice(names)
            schema = (self._schema_of(part).get("properties") or {}).get(name, {})
            path = random.choice(
                (f"/{part}/{name}", f"/{part}/{name}", f"/{part}/{name}/0", f"/{part}/{name}/-", f"/{part}")
            )
            op = random.choice(("add", "add", "replace", "remove", "test", "copy", "move"))
            each: Body = {"op": op, "path": path}
            if op in ("add", "replace", "test"):
                each["value"] = _whole_numbers(self._fine(schema) if random.random() < 0.8 else value(random, schema))
            elif op in ("copy", "move"):
                each["from"] = f"/{part}/{random.choice(names)}"
            found.append(each)
        return found

    def _json(self) -> Step:
        return Step(
            "PATCH",
            self.path + self._query(),
            self._operations(self.random.choice(("spec", "spec", "metadata", "status"))),
            _JSON,
        )

    def _apply(self) -> Step:
        return self._applied(self.path, self._patch_body(("spec", "spec", "spec", "status")))

    def _status_apply(self) -> Step:
        return self._applied(f"{self.path}/status", self._patch_body(("status", "status", "spec")))

    def _applied(self, path: str, body: Body) -> Step:
        random = self.random
        metadata = body.setdefault("metadata", {})
        if isinstance(metadata, dict):
            for name in [name for name, each in metadata.items() if each in ([], {}, None)]:
                del metadata[name]  # upstream writes an empty list or map of metadata anew each time
            metadata["name"] = self.name
        body = {**self._head(), **body}
        query = self._query(**({"force": "true"} if random.random() < 0.4 else {}))
        if "fieldManager" not in query and random.random() < 0.9:
            query += f"{'&' if query else '?'}fieldManager={random.choice(_MANAGERS)}"
        sent = yaml.safe_dump(body) if random.random() < 0.2 else body
        return Step("PATCH", path + query, sent, _APPLY)

    def _scale(self) -> Step:
        random, path = self.random, f"{self.path}/scale{self._query()}"
        wanted = random.choice((0, 1, 2, 5, 11, -1, "a", None))
        if random.random() < 0.3:
            body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": self.name}}
            if "fieldManager" not in path:
                path += f"{'&' if '?' in path else '?'}fieldManager=s"
            return Step("PATCH", path, {**body, "spec": {"replicas": wanted}}, _APPLY)
        if random.random() < 0.5:
            return Step("PATCH", path, {"spec": {"replicas": wanted}}, _MERGE)

        def edit(found: Any) -> Any:
            if isinstance(found, dict) and "spec" in found:
                found["spec"] = {"replicas": wanted}
            return found

        return Step("PUT", path, edit=edit, about=f"replicas: {wanted}", attempts=3)

    def _delete(self, *, whole: bool = False) -> Step:
        random = self.random
        body: Any = None
        if not whole and random.random() < 0.6:
            body = random.choice(
                (
                    {"propagationPolicy": "Foreground"},
                    {"propagationPolicy": "Orphan"},
                    {"dryRun": ["All"]},
                    {"preconditions": {"uid": "x"}},
                    {"preconditions": {"resourceVersion": "1"}},
                    {"gracePeriodSeconds": 5},
                    {"unknown": 1},
                    {"propagationPolicy": "Other"},
                    {"orphanDependents": True},
                )
            )
        return Step("DELETE", self.path, body)

    def _delete_collection(self) -> Step:
        selector = self.random.choice((f"case={self.name}", f"case={self.name},a=b", "case in (x"))
        more = self.random.choice(("", "&dryRun=All", "&propagationPolicy=Orphan"))
        return Step("DELETE", f"{self.collection}?labelSelector={selector.replace(' ', '%20')}{more}")

    # Steps that read

    def _accept(self, *, write: bool = False) -> str:
        plain = "application/json"
        if write and self.random.random() < 0.8:
            return plain
        return self.random.choice((plain, plain, _TABLE, _TABLE, _METADATA, _YAML, f"{_TABLE},{plain}"))

    def _read(self) -> Step:
        query = self.random.choice(("", "", "", "?includeObject=Object", "?includeObject=None", "?resourceVersion=0"))
        return Step("GET", self.path + query, accept=self._accept())

    def _subresource_read(self) -> Step:
        return Step("GET", f"{self.path}/{self.random.choice(('status', 'scale', 'other'))}", accept=self._accept())

    def _list(self) -> Step:
        random = self.random
        fields = random.choice(
            (
                "",
                f"metadata.name={self.name}",
                "spec.color=red",
                "spec.color!=red",
                "spec.replicas=1",
                "spec.other=1",
                f"metadata.namespace={NAMESPACE}",
                "metadata.name!=x,spec.color=",
                "spec.replicas",
            )
        )
        labels = random.choice((f"case={self.name}", f"case={self.name},a=b", f"case={self.name},a in (c,d),!x"))
        query = f"?labelSelector={labels.replace(' ', '%20')}" + (f"&fieldSelector={fields}" if fields else "")
        accept = self._accept().replace(_METADATA, _METADATA_LIST)
        path = self.collection
        if self.definition.body["spec"]["scope"] == "Namespaced" and random.random() < 0.3:
            path = path.replace(f"/namespaces/{NAMESPACE}", "")
        return Step("GET", path + query, accept=accept)

    def _watch(self) -> Step:
        """Return a request for the watch events since the first answer."""
        random = self.random
        field = random.choice((f"metadata.name={self.name}", f"metadata.name={self.name}", "spec.color=red"))
        query = f"?watch=true&timeoutSeconds=1&resourceVersion={SINCE}&labelSelector=case={self.name}"
        return Step(
            "GET",
            f"{self.collection}{query}&fieldSelector={field}",
            accept=random.choice(("application/json", "application/json", _TABLE, _METADATA)),
        )


def _whole_numbers(value: Any) -> Any:
    """Return a copy of a value without whole-number floats, and without integers beyond Go's.

    Upstream validates 1.0 as another type than 1, while one of both is turned into 1 here before validation.
    """
    if isinstance(value, dict):
        return {name: _whole_numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return 2**63 - 1 if isinstance(value, int) and value >= 2**63 else value


def _unlike(items: list[Any], keys: list[str] | None) -> list[Any]:
    """The items without those that are like one before."""
    found: dict[str, Any] = {}
    for each in items:
        mark = each if keys is None or not isinstance(each, dict) else [each.get(key) for key in keys]
        found.setdefault(json.dumps(mark), each)
    return list(found.values())
