"""Writes src/steersman/openapi/data: what OpenAPI documents tell of built-in types that the types do not say.

    python -m tools.generate_openapi FACTS [--output FOLDER] [--on-request FILE]

FACTS is a folder with `openapi-v2.json`, the v2 document without descriptions of a server with the default
--runtime-config, and `all/` with the same and `openapi/*.json` (the v3 documents, one a group version) of one with
api/all=true. `schemas.json` gets a merge patch for each schema that is not what `steersman.openapi.derived` makes of
its type, `shared_parameters.json` the names of parameters in the v2 document. What only api/all=true serves goes to the
file that tools/generate_types.py reads. The output depends on the input alone, byte for byte.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from steersman.controlplane import on_request
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS
from steersman.endpoints.discovery import served_versions
from steersman.openapi.derived import GVK, derive, type_named
from steersman.openapi.names import META
from steersman.openapi.operations import Operation, operations_of
from steersman.openapi.paths import key_of

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "src/steersman/openapi/data"
ON_REQUEST = ROOT / "tools/generate/v2_on_request.json.gz"
OF_EVERY_GROUP = (f"{META}DeleteOptions", f"{META}WatchEvent")


def main() -> None:
    """Reads the facts named on the command line and writes what is made of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("facts", type=Path)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--on-request", type=Path, default=ON_REQUEST)
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True)
    v2, everything = read(options.facts / "openapi-v2.json"), read(options.facts / "all/openapi-v2.json")
    schemas: dict[str, Any] = {}
    for source in sorted((options.facts / "all/openapi").glob("*.json")):
        schemas |= read(source)["components"].get("schemas", {})
    for name in OF_EVERY_GROUP:
        schemas[name][GVK] = everything["definitions"][name][GVK]
    write(options.output / "schemas.json", facts_about(schemas))
    write(options.output / "shared_parameters.json", shared_parameters(everything))
    data = json.dumps(addition(everything, v2), separators=(",", ":"), sort_keys=True).encode()
    options.on_request.write_bytes(gzip.compress(data, 9, mtime=0))


def read(source: Path) -> dict[str, Any]:
    """One document of the facts."""
    document: dict[str, Any] = json.loads(source.read_bytes())
    return document


def write(target: Path, facts: dict[str, Any]) -> None:
    """A fact a line."""
    lines = (f"{json.dumps(name)}:{json.dumps(fact, sort_keys=True)}" for name, fact in sorted(facts.items()))
    target.write_text("{" + ",\n".join(lines) + "}\n")


def facts_about(schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the changes that turn the derived schemas into these."""
    found = {}
    for name, schema in schemas.items():
        type_name = type_named(name)
        derived = derive(type_name) if type_name else {}
        if not type_name or derived != schema:
            found[name] = difference(derived, schema)
    return found


def difference(old: Any, new: Any) -> Any:
    """The merge patch that makes `new` of `old`."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone = {name: None for name in old if name not in new}
    return gone | {name: difference(old.get(name), value) for name, value in new.items() if old.get(name) != value}


def shared_parameters(document: dict[str, Any]) -> dict[str, str]:
    """The names of shared parameters in a v2 document, by `key_of`; those of bodies by their schema."""
    found: dict[str, str] = {}
    every = (*on_request.kube_api(lambda *_: True), *API_EXTENSIONS, *AGGREGATOR)
    for operation in (each for one in every for served in served_versions(one) for each in operations_of(served)):
        names = names_of_parameters(document, operation)
        for parameter in operation.parameters:
            if name := names.get((parameter.name, parameter.place)):
                found[key_of(parameter)] = name
        if operation.body is not None and (name := names.get(("body", "body"))):
            found[operation.body.schema] = name
    return found


def names_of_parameters(document: dict[str, Any], operation: Operation) -> dict[tuple[str, str], str]:
    """The shared parameters of an operation: their names by parameter and place."""
    item = document["paths"][operation.path]
    names = {}
    for each in (*item[operation.method].get("parameters", ()), *item.get("parameters", ())):
        if "$ref" in each:
            name = each["$ref"].rpartition("/")[2]
            whole = document["parameters"][name]
            names[whole["name"], whole["in"]] = name
    return names


def addition(whole: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The paths of a v2 document that another lacks, with every definition and parameter they lead to."""
    paths = {path: item for path, item in whole["paths"].items() if path not in known["paths"]}
    kept: dict[str, dict[str, Any]] = {"definitions": {}, "parameters": {}}
    pending: list[Any] = [paths]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending += each
        elif isinstance(each, dict):
            pending += each.values()
            if isinstance(reference := each.get("$ref"), str):
                _, section, name = reference.split("/", 2)
                if name not in kept[section]:
                    kept[section][name] = whole[section][name]
                    pending.append(whole[section][name])
    return {**whole, **kept, "paths": paths}


if __name__ == "__main__":
    main()
