"""Holds the OpenAPI documents of kinds that bring their own schemas against those that a reference server has of them.

    python -m tools.compare_openapi --reference COMMAND [--random 20] [FILE.yaml ...]

The files hold CustomResourceDefinitions; more of them, with schemas of every shape, are made with `--random`. They are
created on the reference server. For each of their group versions the whole v3 document is compared, and of v2 the paths
and definitions of their groups: member by member, in any order of keys, 1 and 1.0 being different. Parameters
and built-in types may be described in other words.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import orjson

from steersman.api.autoscaling.v1 import Scale
from steersman.endpoints.discovery import ServedResource, served_versions
from steersman.kinds.built_in import built_in
from steersman.kinds.open import OpenKind
from steersman.machinery.codec.strict import yaml_as_json
from steersman.machinery.errors import field
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.openapi.builder import group_version_document
from steersman.openapi.schemas import Schemas
from steersman.rest.resource import Resource, Subresource
from steersman.rest.strategy import Strategy
from steersman.schema import SchemaChecks, schema_errors
from tools.compare_schemas.schemas import oddly, places, schema
from tools.differential.server import Client, Server

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_READY: Final = 60.0
"""Seconds that the reference server has to publish what was defined."""
_SHOWN: Final = 300
"""Characters of each side of a difference that are printed."""
_NOWHERE: Final = object()
"""Stands for a member that one side does not have."""

Plain = dict[str, Any]
Difference = tuple[str, Any, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if both publish the same."""
    parser = argparse.ArgumentParser(prog="python -m tools.compare_openapi", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="YAML files of CustomResourceDefinitions")
    parser.add_argument("--reference", required=True, help="a command that starts the reference server")
    parser.add_argument("--random", type=int, default=0, help="definitions with schemas of every shape to be made")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--show", type=int, default=40, help="differences that are printed")
    options = parser.parse_args(arguments)
    definitions = [each for file in options.files for each in definitions_in(file.read_text())]
    definitions += [random_definition(Random(f"{options.seed}-{number}"), number) for number in range(options.random)]
    with Server(options.reference) as client:
        known = [each for definition in definitions if (each := created(client, definition)) is not None]
        found = [*compare(client, known)]
    for place, theirs, ours in found[: options.show]:
        print(f"== {place}\n   reference {_shown(theirs)}\n   ours      {_shown(ours)}")
    print(f"{len(known)} definitions, {len(definitions) - len(known)} were refused; {len(found)} differences")
    return 1 if found else 0


def _shown(value: Any) -> str:
    return "-" if value is _NOWHERE else json.dumps(value)[:_SHOWN]


# Definitions


def definitions_in(text: str) -> Iterator[Plain]:
    """The definitions among the documents of a YAML file, without labels: in charts these are templates."""
    for each in _documents(text):
        if each and each.get("kind") == "CustomResourceDefinition":
            each["metadata"].pop("labels", None)
            yield each


def _documents(text: str) -> Iterator[Any]:
    for each in re.split(r"^---$", text, flags=re.MULTILINE):
        yield json.loads(yaml_as_json(each.encode()))


def random_definition(random: Random, number: int) -> Plain:
    """A definition of two versions that the reference server should take. Those of three numbers share a group."""
    names = {"plural": f"foo{number}s", "kind": f"Foo{number}"}
    group = f"g{number // 3}.compared.example.com"
    versions = [_random_version(random, version) for version in ("v1", "v2beta1")]
    versions[0]["storage"] = True
    spec = {"group": group, "scope": random.choice(("Cluster", "Namespaced")), "names": names, "versions": versions}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": f"{names['plural']}.{group}"}, "spec": spec}


def _random_version(random: Random, version: str) -> Plain:
    replicas = {"type": "integer", "minimum": 0}
    spec: Plain = {"type": "object", "properties": {"replicas": replicas, "color": {"type": "string"}}}
    for name in ("a", "b", "c", "d", "e", "f"):
        spec["properties"][name] = _sound(random)
    status = {"type": "object", "properties": {"replicas": replicas, "a": _sound(random)}}
    whole: Plain = {"type": "object", "properties": {"spec": spec, "status": status}}
    if random.random() < 0.2:
        whole["x-kubernetes-preserve-unknown-fields"] = True
    found: Plain = {"name": version, "served": True, "storage": False, "schema": {"openAPIV3Schema": whole}}
    subresources: Plain = {"status": {}} if random.random() < 0.5 else {}
    if random.random() < 0.5:
        subresources["scale"] = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    if subresources:
        found["subresources"] = subresources
    if version == "v1" and random.random() < 0.5:
        found["selectableFields"] = [{"jsonPath": path} for path in (".spec.replicas", ".spec.color")]
    return found


_NOTES: Final[tuple[Plain, ...]] = (
    {"description": "what it is <for>", "title": "a & b"},
    {"externalDocs": {"description": "more", "url": "https://example.com"}},
    {"externalDocs": {"url": ""}},
    {"example": {"a": [1.0, None, 1e30]}},
    {"example": False},
    {"example": 0},
    {"enum": [None]},
    {"enum": [1.0, 1e3, "a", {"b": []}]},
    {"default": None},
    {"x-kubernetes-validations": [{"rule": "true"}, {"rule": "1 < 2", "message": "a <b>", "fieldPath": ""}]},
    {"x-kubernetes-validations": [{"rule": "1 < 2", "messageExpression": "'a'", "reason": "FieldValueForbidden"}]},
    {"x-kubernetes-validations": [{"rule": "self == oldSelf", "optionalOldSelf": False}]},
    {"x-kubernetes-validations": [{"rule": "!oldSelf.hasValue()", "optionalOldSelf": True}]},
)
"""Members that may stand in many places of a schema; the reference server refuses them in others."""


def _sound(random: Random) -> Plain:
    """A schema in which anything stands that may."""
    while True:
        each = schema(random)
        if random.random() < 0.5:
            each = oddly(random, each)
        for _ in range(random.randint(0, 2)):
            random.choice(list(places(each))).update(copy.deepcopy(random.choice(_NOTES)))
        whole = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"p": each}}}}
        if not schema_errors(whole, field.Path("schema"), SchemaChecks(), status_enabled=False):
            return each


def created(client: Client, definition: Plain) -> Plain | None:
    """The definition as the reference server has it, once it is established; None if it is refused."""
    answer = client.ask("POST", _DEFINITIONS, definition)
    if answer.code == 422:
        return None
    if answer.code not in (201, 409):
        raise RuntimeError(f"{definition['metadata']['name']} cannot be created: {answer}")
    path = f"{_DEFINITIONS}/{definition['metadata']['name']}"

    def established() -> Plain | None:
        found: Plain = client.ask("GET", path).body
        conditions = {each["type"]: each["status"] for each in found.get("status", {}).get("conditions") or ()}
        return found if conditions.get("Established") == "True" else None

    return _awaited(established)


def _awaited(ask: Callable[[], Plain | None]) -> Plain:
    end = time.monotonic() + _READY
    while (found := ask()) is None:
        if time.monotonic() > end:
            raise RuntimeError("the reference server does not publish what was defined")
        time.sleep(0.2)
    return found


# Documents


def compare(client: Client, definitions: Sequence[Plain]) -> Iterator[Difference]:
    """Yield the differences between the documents of these definitions here and on the reference server."""
    served: dict[tuple[str, str], list[ServedResource]] = {}
    for definition in definitions:
        for version in definition["spec"]["versions"]:
            if version["served"]:
                resource = resource_of(definition["spec"], version)
                served.setdefault((resource.group, resource.version), []).extend(served_versions(resource))
    paths = {(each.group, each.version, each.resource.plural) for found in served.values() for each in found}
    v2 = _awaited(lambda: _if_whole(client.ask("GET", "/openapi/v2").body, paths))
    shared = Schemas()
    for (group, version), resources in served.items():
        name = f"apis/{group}/{version}"
        own = {each for each in paths if each[:2] == (group, version)}
        theirs = _awaited(lambda name=name, own=own: _if_whole(_v3(client, name), own))  # type: ignore[misc]
        document = group_version_document(group, version, resources)
        yield from differences(name, comparable(theirs), comparable(document.build()))
        fragments = document.fragments(shared)
        for section, ours in (("paths", fragments.paths), ("definitions", fragments.definitions)):
            known = {name: orjson.loads(each) for name, each in ours.items()}
            found = {key: each for key, each in v2[section].items() if _is_of(key, group, version) or key in known}
            yield from differences(f"v2 {name} {section}", comparable(found), comparable(known))


def _v3(client: Client, name: str) -> Any:
    answer = client.ask("GET", f"/openapi/v3/{name}")
    return answer.body if answer.code == 200 else {}


def _if_whole(document: Plain, paths: set[tuple[str, str, str]]) -> Plain | None:
    found = {tuple(match.groups()) for path in document.get("paths", ()) if (match := _COLLECTION.match(path))}
    return document if paths <= found else None


_COLLECTION: Final = re.compile(r"/apis/([^/]+)/([^/]+)/(?:namespaces/\{namespace\}/)?([^/]+)$", re.ASCII)


def _is_of(key: str, group: str, version: str) -> bool:
    """Return True if a path, or the name of a definition, belongs to a group version."""
    return key.startswith((f"/apis/{group}/{version}/", ".".join([*reversed(group.split(".")), version, ""])))


def resource_of(spec: Plain, version: Plain) -> Resource[Any]:
    """Return the served resource of one version of a definition, as far as documents show it."""
    names, asked = spec["names"], version.get("subresources") or {}
    subresources = {
        "scale": Subresource(name="scale", kind=built_in(Scale), view=NotImplemented),
        "status": Subresource(name="status", strategy=Strategy()),
    }
    gvk = GroupVersionKind(spec["group"], version["name"], names["kind"])
    return Resource(
        kind=OpenKind(gvk, names["listKind"], openapi=version["schema"]["openAPIV3Schema"]),
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        name_validator=name_is_dns_subdomain,
        subresources=tuple(each for name, each in subresources.items() if name in asked),
        selectable_fields={each["jsonPath"][1:]: str for each in version.get("selectableFields") or ()},
    )


# Comparison


def comparable(document: Any) -> Any:
    """A document in which numbers are texts, so that 1 and 1.0 differ, without the descriptions of parameters and of
    built-in types."""
    return _compared(json.loads(json.dumps(document), parse_float=_number, parse_int=_number))


def _number(text: str) -> Plain:
    return {"number": text}


def _compared(value: Any, *, described: bool = True) -> Any:
    if isinstance(value, list):
        return [_compared(each, described=described) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("in") in ("path", "query", "body") and "name" in value:
        described = False
    return {
        key: _compared(each, described=described and not key.startswith("io.k8s.api"))
        for key, each in value.items()
        if described or key != "description" or not isinstance(each, str)
    }


def differences(place: str, theirs: Any, ours: Any) -> Iterator[Difference]:
    """Each member that is not the same, with what either side has there."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs.keys() | ours.keys():
            yield from differences(f"{place} | {key}", theirs.get(key, _NOWHERE), ours.get(key, _NOWHERE))
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, pair in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(f"{place}[{number}]", *pair)
    elif theirs != ours:
        yield place, theirs, ours


if __name__ == "__main__":
    sys.exit(main())
